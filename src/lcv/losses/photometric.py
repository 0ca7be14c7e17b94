"""Brightness constancy: an image should look like the other one warped onto it."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.cost_volume.warp import warp_clamped
from lcv.losses.robust import ReduceCount, abs_robust


def photometric_loss(
    image1: Tensor,
    image2: Tensor,
    flow_fw: Tensor,
    flow_bw: Tensor,
    mask_fw: Tensor | None = None,
    mask_bw: Tensor | None = None,
    *,
    reduce_count: ReduceCount | None = None,
) -> Tensor:
    """DDFlow's photometric loss, both directions added.

        abs_robust(I1 − warp(I2, flow_fw), mask_fw) + abs_robust(I2 − warp(I1, flow_bw), mask_bw)

    image1, image2: (b, 3, h, w) RGB in 0..255, divided by 255 here; flow_fw, flow_bw:
    (b, 2, h, w); mask_fw, mask_bw: (b, 1, h, w), True where the pixel counts (not occluded), by
    default everywhere → scalar

    Conventions: only full-resolution flows enter, there is no smoothness term, and the warp is the
    original's, which is zero where a flow leads out of view and on the last row and column.
    `reduce_count` as in `abs_robust`.
    """
    expect(
        "photometric_loss",
        image1,
        "image1: b 3 h w",
        image2,
        "image2: b 3 h w",
        flow_fw,
        "flow_fw: b 2 h w",
        flow_bw,
        "flow_bw: b 2 h w",
        hint="Flows are taken at the size of the images.",
    )
    everywhere = image1.new_ones(len(image1), 1, *image1.shape[2:])
    image1, image2 = image1 / 255, image2 / 255
    forward = abs_robust(
        image1 - warp_clamped(image2, flow_fw),
        everywhere if mask_fw is None else mask_fw,
        reduce_count=reduce_count,
    )
    backward = abs_robust(
        image2 - warp_clamped(image1, flow_bw),
        everywhere if mask_bw is None else mask_bw,
        reduce_count=reduce_count,
    )
    return forward + backward

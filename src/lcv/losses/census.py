"""The census loss: neighbourhoods should have the same pattern, whatever their brightness."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from lcv.cost_volume.expect import expect
from lcv.cost_volume.warp import warp_clamped
from lcv.losses.robust import ReduceCount, abs_robust

RADIUS = 3
GREY = (0.2989, 0.587, 0.114)


def soft_ternary(image: Tensor) -> Tensor:
    """How each pixel's 7×7 neighbours compare with it: darker −1, alike 0, brighter +1, softly.

        d = grey[p + o] − grey[p],    t = d / √(0.81 + d²)

    image: (b, 3, h, w) RGB in 0..255 → (b, 49, h, w); grey = 0.2989 R + 0.587 G + 0.114 B, zero
    outside the image

    Facts: within 3 pixels of the border some neighbours are those zeros; elsewhere adding a
    constant to the image changes nothing. One grey level of difference gives |t| = 0.743.
    """
    # Scaled channel by channel: autocast would round a matrix product to eight bits, and a tensor
    # of the three weights would have to be copied to the device.
    red, green, blue = (image[:, i : i + 1] * weight for i, weight in enumerate(GREY))
    grey = red + green + blue
    patches = F.unfold(grey, 2 * RADIUS + 1, padding=RADIUS)  # (b, 49, h·w)
    d = patches.view(len(grey), -1, *grey.shape[2:]) - grey
    return d / (0.81 + d.square()).sqrt()


def census_distance(image1: Tensor, image2: Tensor) -> Tensor:
    """How many of the 49 comparisons differ, softly.

        Σ_o (t1 − t2)² / (0.1 + (t1 − t2)²)

    image1, image2: (b, 3, h, w) in 0..255 → (b, 1, h, w), from 0 for equal patterns to under 48
    (the centre never differs from itself)
    """
    squared = (soft_ternary(image1) - soft_ternary(image2)).square()
    return (squared / (0.1 + squared)).sum(1, keepdim=True)


def inside_border(mask: Tensor) -> Tensor:
    """The mask, cleared in the frame of 3 pixels where the 7×7 patches leave the image."""
    h, w = mask.shape[2:]
    inside = torch.zeros_like(mask)
    inside[:, :, RADIUS : h - RADIUS, RADIUS : w - RADIUS] = 1
    return mask * inside


def census_loss(
    image1: Tensor,
    image2: Tensor,
    flow_fw: Tensor,
    flow_bw: Tensor,
    mask_fw: Tensor | None = None,
    mask_bw: Tensor | None = None,
    *,
    reduce_count: ReduceCount | None = None,
) -> Tensor:
    """DDFlow's census loss, both directions added.

        abs_robust(distance(I1, warp(I2, flow_fw)), mask_fw, less the 3-pixel frame) + in reverse

    Arguments as in `photometric_loss`.
    Facts: the minimum is 0.01^0.4, about 0.158. Equal images under zero flow reach it wherever
    the patch does not see the last row and column, which the warp zeroes: the frame hides all of
    their effect but one row and one column of pixels, the fourth from those two sides.
    """
    expect(
        "census_loss",
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
    forward = abs_robust(
        census_distance(image1, warp_clamped(image2, flow_fw)),
        inside_border(everywhere if mask_fw is None else mask_fw),
        reduce_count=reduce_count,
    )
    backward = abs_robust(
        census_distance(image2, warp_clamped(image1, flow_bw)),
        inside_border(everywhere if mask_bw is None else mask_bw),
        reduce_count=reduce_count,
    )
    return forward + backward

"""Which pixels are hidden in the other frame, judged by whether the two flows cancel."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.cost_volume.warp import warp_clamped


def occluded_by_consistency(
    flow_fw: Tensor, flow_bw: Tensor, *, slope: float = 0.01, offset: float = 0.5
) -> tuple[Tensor, Tensor]:
    """Occlusion by the forward-backward check, in both directions.

        back = warp(flow_bw, flow_fw)
        occluded where |flow_fw + back|² > slope · (|flow_fw|² + |back|²) + offset

    flow_fw, flow_bw: (b, 2, h, w) → two masks (b, 1, h, w), bool, True where occluded: of frame 1
    (by flow_fw) and of frame 2 (by flow_bw)

    Conventions: the warp is DDFlow's, so a flow that leads out of view finds back = 0 and counts
    as occluded once |flow_fw|² > slope · |flow_fw|² + offset, i.e. from 0.711 pixels on.
    Facts: no gradient; exchanging the flows exchanges the masks; zero flows give no occlusion.
    """
    expect(
        "occluded_by_consistency",
        flow_fw,
        "flow_fw: b 2 h w",
        flow_bw,
        "flow_bw: b 2 h w",
        hint="Both flows.",
    )

    def check(there: Tensor, back: Tensor) -> Tensor:
        back = warp_clamped(back, there)
        gap = _squared_length(there + back)
        return gap > slope * (_squared_length(there) + _squared_length(back)) + offset

    with torch.no_grad():
        return check(flow_fw, flow_bw), check(flow_bw, flow_fw)


def _squared_length(flow: Tensor) -> Tensor:
    return flow.square().sum(1, keepdim=True)

"""All that is asked about one pair, from two encoded frames: the tensors behind a FlowResult."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lcv.cost_volume.warp import in_view, warp
from lcv.losses.occlusion import occluded_by_consistency
from lcv.predict.matching import Encoded, Matcher


class Wanted(NamedTuple):
    """What is asked beside the flow."""

    backward: bool = False
    occlusion: bool = False
    warp_error: bool = False

    @property
    def both_ways(self) -> bool:
        """Whether the flow from frame 2 to frame 1 must be computed."""
        return self.backward or self.occlusion


class Flows(NamedTuple):
    """flow, backward: (1, 2, h, w); occluded: (1, 1, h, w) bool; warp_error: (1, 1, h, w)"""

    flow: Tensor
    low: Tensor | None
    backward: Tensor | None
    occluded: Tensor | None
    warp_error: Tensor | None


def match_whole(
    matcher: Matcher, first: Encoded, second: Encoded, wanted: Wanted, start: Tensor | None = None
) -> Flows:
    """The pair in one piece. start: for the forward direction alone"""
    output = matcher.match(first, second, start)
    backward = None if output.backward is None else output.backward.flow
    if backward is None and wanted.both_ways:
        backward = matcher.match(second, first).flow
    return with_companions(output.flow, output.low, backward, first.image, second.image, wanted)


def with_companions(
    flow: Tensor,
    low: Tensor | None,
    backward: Tensor | None,
    image1: Tensor,
    image2: Tensor,
    wanted: Wanted,
) -> Flows:
    """What follows from the two flows and the two images, (1, 3, h, w), without the network."""
    flow = flow.float()
    occluded = error = None
    if backward is not None:
        backward = backward.float()
    if wanted.occlusion and backward is not None:
        occluded, _ = occluded_by_consistency(flow, backward)
    if wanted.warp_error:
        error = warp_error(image1, image2, flow)
    return Flows(flow, low, backward if wanted.backward else None, occluded, error)


def warp_error(image1: Tensor, image2: Tensor, flow: Tensor) -> Tensor:
    """How badly the flow explains frame 1 by frame 2, in grey levels; NaN where it leaves the view.

        error(x) = mean over colours |image1(x) − image2(x + flow(x))|

    images: (1, 3, h, w), 0 … 255; flow: (1, 2, h, w) → (1, 1, h, w) float32
    """
    # A target a hair outside is rounding, not absence: pixel 0 must not vanish at a flow of −1e-5.
    seen = in_view(flow.round(decimals=3))
    error = (image1.float() - warp(image2.float(), flow)).abs().mean(1, keepdim=True)
    return torch.where(seen, error, torch.nan)

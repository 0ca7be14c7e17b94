"""DDFlow's two heads: a level's flow from features and costs, and the refinement behind level 2."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lcv.cost_volume.local import local_cost_volume
from lcv.cost_volume.warp import warp_clamped
from lcv.models.ddflow.conv import SameConv2d, leaky

WINDOW = 9


def unit_length(x: Tensor) -> Tensor:
    """Feature vectors scaled to length 1: x / √max(Σ_c x², 1e-12). (b, c, h, w) → the same

    Facts: a zero vector stays zero and has a finite gradient.
    """
    return x * x.square().sum(1, keepdim=True).clamp(min=1e-12).rsqrt()


class Estimator(nn.Module):
    """One level: warp, match, and estimate the whole flow anew.

        n1, n2 = f1/|f1|, w/|w|     with w = f2 warped by the incoming flow
        cost   = Σ_c g1 · g2[dy, dx],   g1, g2 = inner_product(n1, n2)
        flow   = convolutions over [81 costs, n1, incoming flow]

    f1, f2: (b, c, h, w); flow: (b, 2, h, w) in pixels of this level
    → new flow (b, 2, h, w) and the features before it (b, 32, h, w)

    Conventions: the 81 costs are in y-outer order, index (dy + 4)·9 + (dx + 4), with no scale and
    no activation. The head reads n1, not W n1. The result is the level's flow itself: nothing is
    added to the incoming one, which is merely an input. The warp is the original's, which returns
    zero on the last row and column even for zero flow.

    Departure: where the flow leads out of view, w is exactly zero here. In the original the four
    terms of the interpolation cancel there only to rounding, and division by max(|w|, 1e-6) then
    makes of the remaining 1e-7 a vector of length up to 0.1, noise that the costs take in. In
    float64 the noise is gone, and the original computes what we do.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = SameConv2d(WINDOW**2 + channels + 2, 128)
        self.conv2 = SameConv2d(128, 128)
        self.conv3 = SameConv2d(128, 96)
        self.conv4 = SameConv2d(96, 64)
        self.conv5 = SameConv2d(64, 32)
        self.conv6 = SameConv2d(32, 2)

    def forward(
        self, f1: Tensor, f2: Tensor, flow: Tensor, inner_product: nn.Module
    ) -> tuple[Tensor, Tensor]:
        n1, n2 = unit_length(f1), unit_length(warp_clamped(f2, flow))
        g1, g2 = inner_product(n1, n2)
        costs = local_cost_volume(g1, g2, (WINDOW, WINDOW), order="y_outer")  # (b, 9, 9, h, w)
        x = torch.cat([costs.flatten(1, 2), n1, flow], dim=1)  # (b, 81 + c + 2, h, w)
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4, self.conv5):
            x = leaky(conv(x))
        # Under autocast the convolutions round; positions must not, so flow keeps its own dtype.
        return self.conv6(x).to(flow.dtype), x


class Context(nn.Module):
    """Refinement at level 2: flow + dilated convolutions over [features, flow].

    x: (b, 32, h, w), flow: (b, 2, h, w) → (b, 2, h, w)
    Rates 1, 2, 4, 8, 16, 1, 1; unlike the estimators this one does add its input.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = SameConv2d(34, 128)
        self.conv2 = SameConv2d(128, 128, dilation=2)
        self.conv3 = SameConv2d(128, 128, dilation=4)
        self.conv4 = SameConv2d(128, 96, dilation=8)
        self.conv5 = SameConv2d(96, 64, dilation=16)
        self.conv6 = SameConv2d(64, 32)
        self.conv7 = SameConv2d(32, 2)

    def forward(self, x: Tensor, flow: Tensor) -> Tensor:
        x = torch.cat([x, flow], dim=1)  # (b, 34, h, w)
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4, self.conv5, self.conv6):
            x = leaky(conv(x))
        refinement: Tensor = self.conv7(x)
        return flow + refinement.to(flow.dtype)

"""Networks that cost nothing and whose flow is known beforehand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lcv.models.types import FlowOutput


class Constant(nn.Module):
    """The same flow at every pixel, whatever it sees; remembers how it was called.

    recurrent: takes iterations, padding and a start, as RAFT does; else refuses them, as VCN does
    """

    def __init__(self, flow: tuple[float, float] = (0.0, 0.0), recurrent: bool = True) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.tensor(flow))
        self.calls: list[dict[str, object]] = []
        if recurrent:
            self.default_iters_evaluation = 20

    def forward(self, image1: Tensor, image2: Tensor, **options: object) -> FlowOutput:
        assert image1.shape == image2.shape
        if not hasattr(self, "default_iters_evaluation"):
            assert options == {}, "this network has its own rules"
        self.calls.append({**options, "training": self.training, "dtype": self.constant.dtype})
        b, _, h, w = image1.shape
        flow = self.constant.view(1, 2, 1, 1).expand(b, 2, h, w)
        low = self.constant.view(1, 2, 1, 1).expand(b, 2, -(-h // 8), -(-w // 8)) / 8
        return FlowOutput(flow, low=low)

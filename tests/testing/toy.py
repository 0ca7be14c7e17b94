"""A small network of somebody else's: features, a cost volume over five shifts, a head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS = 8


class Toy(nn.Module):
    """image1, image2 (b, 3, 4m, 4n), 0 … 255 → flow of the same size."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Conv2d(3, CHANNELS, 4, stride=4)
        self.head = nn.Conv2d(5, 2, 3, padding=1)

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        f1, f2 = self.encoder(image1 / 255), self.encoder(image2 / 255)
        shifts = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
        costs = [(f1 * f2.roll(shift, (2, 3))).sum(1, keepdim=True) for shift in shifts]
        flow = self.head(torch.cat(costs, 1))
        return nn.functional.interpolate(4 * flow, scale_factor=4.0, mode="bilinear")

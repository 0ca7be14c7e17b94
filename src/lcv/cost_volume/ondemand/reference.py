"""The truth about the on-demand lookup: frame-2 features sampled one offset at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.sample import sample


def lookup(
    f1: Tensor, f2: Tensor, coords: Tensor, *, levels: int, rx: int, ry: int, scale: float
) -> Tensor:
    """See `lcv.cost_volume.ondemand.OnDemand.lookup`."""
    out = []
    for level in range(levels):
        if level > 0:
            f2 = F.avg_pool2d(f2, 2)
        x, y = coords[:, :1] / 2**level, coords[:, 1:] / 2**level  # (b, 1, h, w)
        for dx in range(-rx, rx + 1):
            for dy in range(-ry, ry + 1):
                there = sample(f2, torch.cat((x + dx, y + dy), dim=1))
                out.append(scale * (f1 * there).sum(1))
    return torch.stack(out, dim=1)

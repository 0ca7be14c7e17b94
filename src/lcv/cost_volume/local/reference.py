"""The truth about the local cost volume: one offset at a time, written to be read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def local_cost_volume(
    f1: Tensor, f2: Tensor, u: int, v: int, *, scale: float, keep_channels: bool, x_outer: bool
) -> Tensor:
    """See `lcv.cost_volume.local.local_cost_volume`."""
    h, w = f1.shape[-2:]
    rx, ry = u // 2, v // 2
    around = F.pad(f2, (rx, rx, ry, ry))
    columns = []
    for dx in range(-rx, rx + 1):
        column = []
        for dy in range(-ry, ry + 1):
            shifted = around[:, :, ry + dy : ry + dy + h, rx + dx : rx + dx + w]
            product = scale * f1 * shifted  # (b, c, h, w)
            column.append(product if keep_channels else product.sum(1))
        columns.append(torch.stack(column, dim=-3))  # (…, v, h, w)
    volume = torch.stack(columns, dim=-4)  # (…, u, v, h, w)
    return volume if x_outer else volume.transpose(-4, -3).contiguous()

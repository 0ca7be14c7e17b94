"""LCV in RAFT as its authors compute it, for comparison: W and the volume rebuilt at every update.

Their block holds both feature maps. Each lookup inverts I − S, multiplies W together, multiplies all
pairs, pools the pyramid and reads windows with grid_sample. Ours does all but the last once a pair.
Written here from the description of their method; nothing in the package predicts with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Held(NamedTuple):
    """Both maps, (b, c, h, w), kept until a lookup."""

    f1: Tensor
    f2: Tensor


class RebuiltVolume:
    """The costs of `AllPairs` behind W = PᵀΛP, all of it computed again by every `lookup`.

    raw_P, raw_D: the authors' parameters, (c, c) and (c,); see `lcv.inner_product.convert`
    levels, radius: of the pyramid and of the windows
    """

    def __init__(self, raw_P: Tensor, raw_D: Tensor, levels: int, radius: int) -> None:
        self.raw_P, self.raw_D = raw_P.detach(), raw_D.detach()
        self.levels, self.radius = levels, radius
        self.eye = torch.eye(len(raw_D), dtype=raw_P.dtype, device=raw_P.device)

    def build(self, f1: Tensor, f2: Tensor) -> Held:
        """Nothing yet."""
        return Held(f1, f2)

    def matrix(self) -> Tensor:
        """W, by an explicit inverse."""
        upper = torch.triu(self.raw_P)
        S = (upper - upper.mT) / 2
        P = (self.eye + S) @ torch.linalg.inv(self.eye - S)
        tau = torch.atan(self.raw_D) * (2 / math.pi)
        return P.mT @ torch.diag((1 + tau) / (1 - tau)) @ P

    def pyramid(self, held: Held) -> list[Tensor]:
        """(b·h·w, 1, h/2ⁱ, w/2ⁱ) a level, and one level more than is read, as they have it."""
        b, c, h, w = held.f1.shape
        left = torch.tensordot(held.f1.flatten(2), self.matrix(), dims=([1], [0]))  # b, h·w, c
        costs = (left @ held.f2.flatten(2)) / math.sqrt(c)
        levels = [costs.reshape(b * h * w, 1, h, w)]
        for _ in range(self.levels):
            if min(levels[-1].shape[-2:]) > 1:  # their pooling fails below 16 pixels
                levels.append(F.avg_pool2d(levels[-1], 2, stride=2))
        return levels

    def lookup(self, held: Held, coords: Tensor) -> Tensor:
        """As `AllPairs.lookup`; coords: (b, 2, h, w)."""
        b, _, h, w = coords.shape
        r = self.radius
        step = torch.arange(-r, r + 1, dtype=coords.dtype, device=coords.device)
        window = torch.stack(torch.meshgrid(step, step, indexing="ij"), dim=-1)  # x is slow
        centre = coords.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2)
        read = []
        for i, level in enumerate(self.pyramid(held)[: self.levels]):
            rows, columns = level.shape[-2:]
            x, y = (centre / 2**i + window).split(1, dim=-1)
            grid = torch.cat(((2 * x + 1) / columns - 1, (2 * y + 1) / rows - 1), dim=-1)
            costs = F.grid_sample(level, grid, align_corners=False)  # holds for a single pixel too
            read.append(costs.reshape(b, h, w, -1))
        return torch.cat(read, dim=-1).permute(0, 3, 1, 2).contiguous()

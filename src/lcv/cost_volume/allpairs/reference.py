"""The truth about the all-pairs volume: the whole volume, pooled, read one offset at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def build(f1: Tensor, f2: Tensor, *, levels: int, scale: float) -> tuple[Tensor, ...]:
    """The volume and its pyramid, level i of shape (b, h, w, h₂ᵢ, w₂ᵢ)."""
    volume = scale * torch.einsum("bcij,bckl->bijkl", f1, f2)
    pyramid = [volume]
    for _ in range(levels - 1):
        b, h, w, h2, w2 = pyramid[-1].shape
        pooled = F.avg_pool2d(pyramid[-1].reshape(b * h * w, 1, h2, w2), 2)
        pyramid.append(pooled.reshape(b, h, w, h2 // 2, w2 // 2))
    return tuple(pyramid)


def lookup(pyramid: tuple[Tensor, ...], coords: Tensor, *, rx: int, ry: int) -> Tensor:
    """See `lcv.cost_volume.allpairs.AllPairs.lookup`."""
    out = []
    for level, volume in enumerate(pyramid):
        x, y = coords[:, 0] / 2**level, coords[:, 1] / 2**level  # (b, h, w)
        for dx in range(-rx, rx + 1):
            for dy in range(-ry, ry + 1):
                out.append(_bilinear(volume, x + dx, y + dy))
    return torch.stack(out, dim=1)


def _bilinear(volume: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The volume (b, h, w, h₂, w₂) at one position (b, h, w) for each first pixel."""
    x0, y0 = x.detach().floor(), y.detach().floor()
    fx, fy = x - x0, y - y0
    return (
        (1 - fx) * (1 - fy) * _pixel(volume, x0, y0)
        + fx * (1 - fy) * _pixel(volume, x0 + 1, y0)
        + (1 - fx) * fy * _pixel(volume, x0, y0 + 1)
        + fx * fy * _pixel(volume, x0 + 1, y0 + 1)
    )


def _pixel(volume: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The volume at whole-numbered positions, zero outside."""
    h2, w2 = volume.shape[-2:]
    inside = (x >= 0) & (x < w2) & (y >= 0) & (y < h2)
    index = y.clamp(0, h2 - 1).long() * w2 + x.clamp(0, w2 - 1).long()
    value = volume.flatten(-2).gather(-1, index[..., None])[..., 0]
    return torch.where(inside, value, torch.zeros_like(value))

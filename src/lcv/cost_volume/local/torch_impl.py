"""The local cost volume by matrix products of short tiles, or, with channels kept, by one product.

Summed: each row of f1 is cut into tiles of T pixels. A tile needs T + u − 1 pixels of each of v
rows of f2, so its costs lie in v products (T×c)·(c×(T+u−1)), of which the band |column − row − rx|
≤ rx is wanted. Part of the numbers is computed in vain, but all come at the speed of a matrix
product: for a 9×9 window on two CPU cores, four times that of one offset at a time.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.local import reference

# Of a tile's T + u − 1 columns u are wanted: longer tiles waste more, shorter ones multiply slower.
_TILE = 16


def local_cost_volume(
    f1: Tensor, f2: Tensor, u: int, v: int, *, scale: float, keep_channels: bool, x_outer: bool
) -> Tensor:
    """See `lcv.cost_volume.local.local_cost_volume`."""
    if torch.compiler.is_exporting():
        # An exported program keeps its sizes open. The number of tiles would split them into
        # those below and those above one tile; slices, products and sums hold for all.
        return reference.local_cost_volume(
            f1, f2, u, v, scale=scale, keep_channels=keep_channels, x_outer=x_outer
        )
    if keep_channels:
        around = F.pad(f2, (u // 2, u // 2, v // 2, v // 2))
        kept: Tensor = _Kept.apply(scale * f1, around, u, v, x_outer)  # type: ignore[no-untyped-call]
        return kept
    return _summed(scale * f1, f2, u, v, x_outer)


def _summed(f1: Tensor, f2: Tensor, u: int, v: int, x_outer: bool) -> Tensor:
    b, c, h, w = f1.shape
    tiles = (w + _TILE - 1) // _TILE
    wide = tiles * _TILE
    span = _TILE + u - 1
    # Rows stand first, so that v neighbouring ones are one piece of memory.
    left = F.pad(f1, (0, wide - w)).view(b, c, h, tiles, _TILE).permute(2, 0, 3, 4, 1)
    around = F.pad(f2, (u // 2, u // 2 + wide - w, v // 2, v // 2))
    right = around.unfold(3, span, _TILE).permute(2, 0, 3, 1, 4)  # (h+v−1, b, tiles, c, span)
    left = left.reshape(h, b * tiles, _TILE, c)
    right = right.reshape(h + v - 1, b * tiles, c, span)
    bands: Tensor = _Bands.apply(left, right, u, v)  # type: ignore[no-untyped-call]
    bands = bands.view(v, h, b, wide, u)[:, :, :, :w]
    axes = (2, 4, 0, 1, 3) if x_outer else (2, 0, 4, 1, 3)
    return bands.permute(axes).contiguous()


class _Bands(torch.autograd.Function):
    """Tiles (h, n, T, c) times tiles (h+v−1, n, c, T+u−1), of each product the band of u.

    out[j, y, n, t, i] = Σ_c left[y, n, t, c] · right[y+j, n, c, t+i]
    """

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, u: int, v: int) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.window = u, v
        h = left.shape[0]
        bands = [_band(left @ right[j : j + h], u) for j in range(v)]
        return torch.stack(bands)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        left, right = ctx.saved_tensors
        u, v = ctx.window
        h = left.shape[0]
        grad_left, grad_right = torch.zeros_like(left), torch.zeros_like(right)
        product = left.new_zeros(*left.shape[:3], right.shape[3])
        for j in range(v):
            _band(product, u).copy_(grad[j])  # what lies beside the band stays zero
            grad_left += product @ right[j : j + h].transpose(2, 3)
            grad_right[j : j + h] += left.transpose(2, 3) @ product
        return grad_left, grad_right, None, None


def _band(product: Tensor, u: int) -> Tensor:
    """(h, n, T, T+u−1) → (h, n, T, u), [t, i] being [t, t+i] of the product; a view.

    Laid flat, row t of the band begins one place further into its row than row t−1.
    """
    return product.flatten(2).unfold(2, u, product.shape[3] + 1)


class _Kept(torch.autograd.Function):
    """Products with every offset: f1 (b, c, h, w), around (b, c, h+v−1, w+u−1)."""

    @staticmethod
    def forward(ctx: Any, f1: Tensor, around: Tensor, u: int, v: int, x_outer: bool) -> Tensor:
        ctx.save_for_backward(f1, around)
        ctx.x_outer = x_outer
        seen = around.unfold(2, v, 1).unfold(3, u, 1)  # (b, c, h, w, v, u), overlapping
        seen = seen.permute((0, 1, 5, 4, 2, 3) if x_outer else (0, 1, 4, 5, 2, 3))
        return (f1[:, :, None, None] * seen).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        f1, around = ctx.saved_tensors
        h, w = f1.shape[2:]
        if not ctx.x_outer:
            grad = grad.transpose(2, 3)
        grad_f1, grad_around = torch.zeros_like(f1), torch.zeros_like(around)
        for i in range(grad.shape[2]):
            for j in range(grad.shape[3]):
                there = slice(None), slice(None), slice(j, j + h), slice(i, i + w)
                grad_f1.addcmul_(grad[:, :, i, j], around[there])
                grad_around[there].addcmul_(grad[:, :, i, j], f1)
        return grad_f1, grad_around, None, None, None

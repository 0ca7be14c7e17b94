"""Whole-pixel costs in and out of a packed volume, and the bilinear mixing between them.

All reads of a window share their fractions (fx, fy), so the u·v bilinear reads are four shifted
slices of one block of (u+1)·(v+1) whole-pixel costs, mixed along y and then along x:

    T[j, i] = (1−fy) R[j, i] + fy R[j+1, i]
    C[j, i] = (1−fx) T[j, i] + fx T[j, i+1]

Each function here stands beside its adjoint; README.md derives the backward pass from them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.allpairs.packed import Layout, Windows
from lcv.cost_volume.conventions import exact_dtype


def gather_rows(volume: Tensor, windows: Windows, layout: Layout) -> Tensor:
    """The whole-pixel costs under each window: volume (n, total) → (n, levels, v+1, u+1)."""
    n = volume.shape[0]
    first = torch.arange(n, device=volume.device) * layout.total
    index = (windows.rows + first[:, None, None]).flatten()
    # All runs of k neighbours as rows of a view that overlaps itself: nothing is copied, and a
    # selected row is one short run of memory, three times as fast as an index for every cell.
    runs = volume.reshape(-1).unfold(0, layout.k, 1)
    return runs.index_select(0, index).view(n, layout.levels, -1, layout.k)


def scatter_rows(rows: Tensor, windows: Windows, layout: Layout) -> Tensor:
    """The adjoint of `gather_rows`: (n, levels, v+1, u+1) → (n, total).

    Rows of one point's windows meet only among the zeros, whose gradient nobody reads, so they
    are written and not added up.
    """
    index = windows.rows[..., None] + torch.arange(layout.k, device=rows.device)
    out = rows.new_zeros(rows.shape[0], layout.total)
    return out.scatter_(1, index.flatten(1), rows.flatten(1))


def mix_rows(rows: Tensor, windows: Windows, layout: Layout) -> Tensor:
    """C from R: (n, levels, v+1, u+1) → (n, levels, v, u), a view."""
    n, k, (u, v) = rows.shape[0], layout.k, layout.window
    fx, fy = (f.to(rows.dtype).reshape(-1, 1) for f in (windows.fx, windows.fy))
    # The rows of a block stay joined, so that each mix runs over one long row instead of many
    # short ones; along x it also mixes each row's end with the next row's beginning, and the
    # unfold leaves those out.
    flat = rows.view(n * layout.levels, (v + 1) * k)
    tall = torch.lerp(flat[:, :-k], flat[:, k:], fy)
    costs = torch.lerp(tall[:, :-1], tall[:, 1:], fx)
    return costs.unfold(1, u, k).view(n, layout.levels, v, u)


def unmix_rows(grad: Tensor, windows: Windows) -> Tensor:
    """The adjoint of `mix_rows`: (n, levels, v, u) → (n, levels, v+1, u+1)."""
    fx, fy = (f.to(grad.dtype)[..., None, None] for f in (windows.fx, windows.fy))
    right = grad * fx
    wide = F.pad(grad - right, (0, 1)) + F.pad(right, (1, 0))
    lower = wide * fy
    return F.pad(wide - lower, (0, 0, 0, 1)) + F.pad(lower, (0, 0, 1, 0))


def slopes(grad: Tensor, rows: Tensor, windows: Windows, layout: Layout) -> tuple[Tensor, Tensor]:
    """What the points gain, Σ grad · ∂C/∂x and Σ grad · ∂C/∂y: (n,) each, in the points' dtype."""
    fx, fy = (f.to(rows.dtype)[..., None, None] for f in (windows.fx, windows.fy))
    tall = torch.lerp(rows[:, :, :-1], rows[:, :, 1:], fy)
    steps = rows[:, :, 1:] - rows[:, :, :-1]
    by_x = (grad * (tall[..., 1:] - tall[..., :-1])).sum((2, 3))  # (n, levels)
    by_y = (grad * torch.lerp(steps[..., :-1], steps[..., 1:], fx)).sum((2, 3))
    # A pixel of level i is 2^i pixels wide.
    exact = windows.fx.dtype
    shrink = torch.arange(layout.levels, device=grad.device, dtype=exact).neg().exp2()
    return (by_x.to(exact) * shrink).sum(1), (by_y.to(exact) * shrink).sum(1)


def as_channels(costs: Tensor, b: int, h: int, w: int) -> Tensor:
    """(b·h·w, levels, v, u) → (b, levels·u·v, h, w), x outer; on a CPU channels last."""
    _, levels, v, u = costs.shape
    if costs.is_cpu:
        return costs.transpose(2, 3).reshape(b, h, w, levels * u * v).permute(0, 3, 1, 2)
    by_pixel = costs.view(b, h * w, levels, v, u).permute(0, 2, 4, 3, 1)  # (b, levels, u, v, h·w)
    return by_pixel.contiguous().view(b, levels * u * v, h, w)


def from_channels(grad: Tensor, layout: Layout) -> Tensor:
    """The adjoint, and inverse, of `as_channels`: → (b·h·w, levels, v, u)."""
    b, _, h, w = grad.shape
    u, v = layout.window
    by_pixel = grad.reshape(b, layout.levels, u, v, h * w).permute(0, 4, 1, 3, 2)
    return by_pixel.reshape(b * h * w, layout.levels, v, u)


def as_points(coords: Tensor) -> Tensor:
    """coords (b, 2, h, w) → (2, b·h·w), in float32 or better."""
    return coords.to(exact_dtype(coords)).transpose(0, 1).reshape(2, -1)

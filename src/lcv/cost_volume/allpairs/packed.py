"""The pyramid of frame 2 laid out flat, so that a window is read as whole rows.

All levels stand one after the other on one axis of length `total`, fine to coarse. With
k = 2rx + 2, the columns that a window of 2rx + 1 bilinear reads touches:

    k zeros | level 0: h rows, each of w values and k zeros | level 1: … | …

A window row is then k neighbours in memory wherever it lies. Past the left edge it reads the
zeros that end the row before, past the right edge those that end its own; a row above or below
the map is sent to the zeros at the very beginning. So "out of view is zero" costs no mask, and a
product with packed features gives a packed volume at once, zeros included.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Layout(NamedTuple):
    """A packed axis: the finest map, the number of levels, the radii of its windows, its length."""

    h: int
    w: int
    levels: int
    rx: int
    ry: int
    total: int

    @property
    def k(self) -> int:
        """The whole pixels that a window row touches, and the zeros between two rows."""
        return 2 * self.rx + 2

    @property
    def window(self) -> tuple[int, int]:
        """u, v."""
        return 2 * self.rx + 1, 2 * self.ry + 1


class Windows(NamedTuple):
    """Where the windows of n points lie.

    rows: (n, levels, 2ry+2) int64, where on the packed axis each window row begins
    fx, fy: (n, levels), the shares of the right and of the lower neighbour in a bilinear read;
        the offsets of a window are whole pixels, so all its reads have the same
    """

    rows: Tensor
    fx: Tensor
    fy: Tensor


def make_layout(h: int, w: int, *, levels: int, rx: int, ry: int) -> Layout:
    """The layout of `levels` levels of a map h×w, each half the one before, rounded down."""
    k = 2 * rx + 2
    cells = sum((h // 2**i) * (w // 2**i + k) for i in range(levels))
    return Layout(h, w, levels, rx, ry, k + cells)


def pack(f2: Tensor, layout: Layout) -> Tensor:
    """f2 (b, c, h, w), averaged 2×2 from level to level, packed: (b, c, total)."""
    parts = [f2.new_zeros(f2.shape[0], f2.shape[1], layout.k)]
    for level in range(layout.levels):
        if level > 0:
            f2 = F.avg_pool2d(f2, 2)
        parts.append(F.pad(f2, (0, layout.k)).flatten(2))
    return torch.cat(parts, dim=2)


def find_windows(x: Tensor, y: Tensor, layout: Layout) -> Windows:
    """The windows around the points (x, y), (n,) each, in pixels of the finest level."""
    k, rx, ry = layout.k, layout.rx, layout.ry
    level = torch.arange(layout.levels, device=x.device)
    heights = torch.full_like(level, layout.h) >> level
    widths = torch.full_like(level, layout.w) >> level
    pitch = widths + k
    cells = heights * pitch
    start = cells.cumsum(0) - cells + k  # of each level
    # So far out, every level shows nothing but zeros; no infinity and no huge number goes on.
    reach_x, reach_y = ((r + 2) * 2**layout.levels for r in (rx, ry))
    shrink = level.to(x.dtype).neg().exp2()
    px = x.clamp(-reach_x, layout.w + reach_x)[:, None] * shrink  # (n, levels)
    py = y.clamp(-reach_y, layout.h + reach_y)[:, None] * shrink
    x0, y0 = px.floor(), py.floor()
    # Bounded as integers too: a NaN becomes any integer, and must not become an address.
    column = torch.minimum((x0.long() - rx).clamp(min=-k), widths)
    row = (y0.long() - ry)[..., None] + torch.arange(2 * ry + 2, device=x.device)
    inside = (row >= 0) & (row < heights[:, None])
    rows = torch.where(inside, row * pitch[:, None] + (column + start)[..., None], 0)
    return Windows(rows, px - x0, py - y0)

"""The lookup on a CPU, without gradients: neighbouring points share one block of frame 2.

Points are taken in tiles of 8×8 neighbours. Their windows overlap, so one block of features that
holds them all is copied and multiplied with the whole tile, and each window is read from the costs.
A tile whose windows lie too far apart is cut into tiles of 4×4, and those into single points.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.allpairs import mixing
from lcv.cost_volume.allpairs.packed import Layout, Windows
from lcv.cost_volume.conventions import exact_dtype

# Sides of tiles, and by how many pixels windows of one tile may lie further apart than those of a
# constant flow. On one CPU core, 8×8 takes 0.4 of the time of 4×4 and 0.3 of that of 1×1.
SIDES = ((8, 4), (4, 4), (1, 0))
LARGEST = SIDES[0][0]
# Blocks of this many bytes stay in the cache between copying and multiplying.
CHUNK = 3 * 2**20


class Level(NamedTuple):
    """A level of frame 2: packed (n, c) is `pad` zeros, then h rows of w pixels and `pad` zeros."""

    packed: Tensor
    h: int
    w: int
    pad: int


class Corners(NamedTuple):
    """The first column and row of each point's window, and the shares of the next ones."""

    x: Tensor
    y: Tensor
    fx: Tensor
    fy: Tensor


def build(f1: Tensor, f2: Tensor, *, levels: int, rx: int, scale: float) -> tuple[Tensor, ...]:
    """Points of frame 1 in the order of tiles (b, n, c), and the levels of frame 2, (b, n, c) each."""
    packed = []
    for level in range(levels):
        if level > 0:
            f2 = F.avg_pool2d(f2, 2)
        rows = F.pad(f2, (0, _pad(rx))).flatten(2).transpose(1, 2)
        packed.append(F.pad(rows, (0, 0, _pad(rx), 0)))
    return _by_tile(scale * f1).transpose(1, 2).contiguous(), *packed


def lookup(
    features: tuple[Tensor, ...], coords: Tensor, *, rx: int, ry: int, max_bytes: int
) -> Tensor:
    """See `lcv.cost_volume.ondemand.OnDemand.lookup`; features as `build` gives them."""
    points, *packed = features
    b, _, h, w = coords.shape
    u, v = 2 * rx + 1, 2 * ry + 1
    out = points.new_empty(b, h, w, len(packed), u, v)  # channels last
    places = _by_tile(coords.to(exact_dtype(coords)))
    room = min(CHUNK, max_bytes)
    across = LARGEST**2 * -(-w // LARGEST)  # points in a row of tiles
    high = LARGEST * max(1, room // (2 * across * u * v * points.element_size()))
    for frame, i, top in product(range(b), range(len(packed)), range(0, h, high)):
        level = Level(packed[i][frame], h >> i, w >> i, _pad(rx))
        band = slice(top // LARGEST * across, (top + high) // LARGEST * across)
        corners = _find_corners(places[frame, :, band] / 2**i, level, rx, ry)
        costs = _costs(points[frame, band], corners, level, 2**i, (u, v), room)
        bottom = min(h, top + high)
        out[frame, top:bottom, :, i] = _from_tiles(costs, bottom - top, w)
    return out.flatten(3).permute(0, 3, 1, 2)


def _find_corners(places: Tensor, level: Level, rx: int, ry: int) -> Corners:
    # So far out there are only zeros; no infinity and no huge number goes on.
    x = places[0].clamp(-level.pad, level.w + level.pad)
    y = places[1].clamp(-level.pad - 2 * ry, level.h + level.pad + 2 * ry)
    left, top = x.floor(), y.floor()
    # A NaN must not become an address; it stays in the shares, and so in the costs.
    column, row = (each.nan_to_num().long() for each in (left, top))
    return Corners(column - rx, row - ry, x - left, y - top)


def _costs(
    points: Tensor,
    corners: Corners,
    level: Level,
    step: int,
    window: tuple[int, int],
    room: int,
) -> Tensor:
    """The costs of all points on one level, (n, v, u).

    step: pixels of the finest level a pixel; room: bytes to work in
    """
    (u, v), (n, c) = window, points.shape
    out = points.new_empty(n, v, u)
    left = torch.arange(n // LARGEST**2)  # tiles that are still to be done
    before = LARGEST
    for side, slack in SIDES:
        parts = (before // side) ** 2
        left = (left[:, None] * parts + torch.arange(parts)).flatten()
        before = side
        reach = -(-(side - 1) // step) + slack
        height, width = v + 1 + reach, u + 1 + reach
        size = points.element_size() * (height * width * (c + side**2) + 4 * side**2 * u * v)
        if side > 1 and size > room:
            continue
        x, y = (each.view(-1, side**2)[left] for each in corners[:2])
        fits = (x.amax(1) - x.amin(1) <= reach) & (y.amax(1) - y.amin(1) <= reach)
        chosen, left = left[fits], left[~fits]
        for tiles in torch.split(chosen, max(1, room // size)) if len(chosen) else ():
            own = Corners(*(each.view(-1, side**2)[tiles] for each in corners))
            here = points.view(-1, side**2, c)[tiles]
            rows = _block_costs(here, own, level, height, width, window)
            out.view(-1, side**2, v, u)[tiles] = rows
    return out


def _block_costs(
    here: Tensor, corners: Corners, level: Level, height: int, width: int, window: tuple[int, int]
) -> Tensor:
    """The costs of tiles of points (m, s, c) with one block of height×width each: (m, s, v, u)."""
    (u, v), (m, s, c) = window, here.shape
    # A block that begins left of its zeros, or right of the map, sees only zeros from there too.
    x = corners.x.amin(1, keepdim=True).clamp(-level.pad, level.w)
    y = corners.y.amin(1, keepdim=True)
    row = y + torch.arange(height)
    inside = (row >= 0) & (row < level.h)
    start = torch.where(inside, row * (level.w + level.pad) + x + level.pad, 0)
    runs = level.packed.reshape(-1).unfold(0, width * c, c)
    block = runs.index_select(0, start.flatten()).view(m, height * width, c)
    volume = here @ block.transpose(1, 2)  # (m, s, height·width)
    column = (corners.x - x).clamp(0, width - u - 1)
    first = (corners.y - y) * width + column + height * width * torch.arange(m * s).view(m, s)
    index = first[..., None] + width * torch.arange(v + 1)
    cells = volume.view(-1).unfold(0, u + 1, 1).index_select(0, index.flatten())
    found = Windows(index, corners.fx.reshape(-1, 1), corners.fy.reshape(-1, 1))
    layout = Layout(level.h, level.w, 1, (u - 1) // 2, (v - 1) // 2, 0)
    return mixing.mix_rows(cells.view(m * s, 1, v + 1, u + 1), found, layout).view(m, s, v, u)


def _pad(rx: int) -> int:
    """The width of the largest block."""
    return 2 * rx + 2 + LARGEST - 1 + SIDES[0][1]


def _by_tile(maps: Tensor) -> Tensor:
    """(b, c, h, w) → (b, c, n): tile after tile of 8×8, in each the four of 4×4, the last repeated."""
    b, c, h, w = maps.shape
    below, right = -h % LARGEST, -w % LARGEST
    maps = torch.cat((maps, maps[:, :, -1:].expand(-1, -1, below, -1)), 2)
    maps = torch.cat((maps, maps[..., -1:].expand(-1, -1, -1, right)), 3)
    cells = maps.view(b, c, (h + below) // 8, 2, 4, (w + right) // 8, 2, 4)
    return cells.permute(0, 1, 2, 5, 3, 6, 4, 7).reshape(b, c, -1)


def _from_tiles(costs: Tensor, h: int, w: int) -> Tensor:
    """The inverse, on costs (n, v, u) → (h, w, u, v)."""
    _, v, u = costs.shape
    cells = costs.view(-(-h // 8), -(-w // 8), 2, 2, 4, 4, v, u).permute(0, 2, 4, 1, 3, 5, 7, 6)
    return cells.reshape(-(-h // 8) * 8, -(-w // 8) * 8, u, v)[:h, :w]

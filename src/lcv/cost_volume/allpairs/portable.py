"""RAFT's lookup in operators that every runtime has: by gather, or by grid_sample.

Both give the costs of `AllPairs`, to rounding, and stand in its place in a network that is to be
exported. The package's own lookup reads a view that overlaps itself, which ONNX does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.allpairs import AllPairs
from lcv.cost_volume.conventions import check_radius, window_offsets
from lcv.cost_volume.sample import sample
from lcv.errors import ArgumentError

LOOKUPS = ("gather", "grid_sample")


class Rings(NamedTuple):
    """All levels of a volume on one axis, each a map with a ring of zeros around it.

    costs: (b·h·w, Σ (hᵢ+2)(wᵢ+2));  sizes: hᵢ, wᵢ of every level, without the ring
    """

    costs: Tensor
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class GatheredPairs:
    """`AllPairs` by one gather: (2rx+2)(2ry+2) whole-pixel costs a window, mixed afterwards.

    A read outside a map is moved into the ring around it, which is zero. So there is no mask, and
    the ring costs one row and one column more on each side.
    """

    levels: int
    rx: int
    ry: int
    scale: float

    def build(self, f1: Tensor, f2: Tensor) -> Rings:
        """f1, f2: (b, c, h, w). Pooling f2 before the product equals pooling the volume after it."""
        maps, sizes = [], []
        for level in range(self.levels):
            if level > 0:
                f2 = F.avg_pool2d(f2, 2)
            maps.append(F.pad(f2, (1, 1, 1, 1)).flatten(2))
            sizes.append((f2.shape[2], f2.shape[3]))
        costs = (self.scale * f1).flatten(2).transpose(1, 2) @ torch.cat(maps, dim=2)
        return Rings(costs.flatten(0, 1), tuple(sizes))

    def lookup(self, state: Rings, coords: Tensor) -> Tensor:
        """See `AllPairs.lookup`: coords (b, 2, h, w) → (b, levels·u·v, h, w)."""
        b, _, h, w = coords.shape
        u, v = 2 * self.rx + 1, 2 * self.ry + 1
        columns = torch.arange(-self.rx, self.rx + 2, device=coords.device)
        rows = torch.arange(-self.ry, self.ry + 2, device=coords.device)
        x, y = coords.transpose(0, 1).reshape(2, -1, 1)  # (b·h·w, 1) each
        places, right, lower = [], [], []
        first = 0
        for level, (height, width) in enumerate(state.sizes):
            # So far out a window shows nothing but zeros, and no float exceeds what an integer holds.
            px = (x / 2**level).clamp(-self.rx - 2, width + self.rx + 1)
            py = (y / 2**level).clamp(-self.ry - 2, height + self.ry + 1)
            x0, y0 = px.floor(), py.floor()
            column = (x0.long() + columns).clamp(-1, width) + 1  # (b·h·w, u+1)
            row = (y0.long() + rows).clamp(-1, height) + 1  # (b·h·w, v+1)
            place = first + row[:, :, None] * (width + 2) + column[:, None, :]
            places.append(place.flatten(1))
            right.append(px - x0)
            lower.append(py - y0)
            first = first + (height + 2) * (width + 2)
        read = state.costs.gather(1, torch.cat(places, dim=1))
        read = read.view(-1, self.levels, v + 1, u + 1)
        fx, fy = (torch.cat(share, dim=1)[..., None, None] for share in (right, lower))
        tall = read[:, :, :-1] + fy * (read[:, :, 1:] - read[:, :, :-1])
        costs = tall[..., :-1] + fx * (tall[..., 1:] - tall[..., :-1])  # (b·h·w, levels, v, u)
        by_pixel = costs.view(b, h * w, self.levels, v, u).permute(0, 2, 4, 3, 1)
        return by_pixel.reshape(b, self.levels * u * v, h, w)


@dataclass(frozen=True)
class SampledPairs:
    """`AllPairs` by one grid_sample a level: a bilinear read for every offset of a window."""

    levels: int
    rx: int
    ry: int
    scale: float

    def build(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, ...]:
        """f1, f2: (b, c, h, w) → the levels of the volume as maps, (b·h·w, 1, hᵢ, wᵢ) each."""
        points = (self.scale * f1).flatten(2).transpose(1, 2)
        volumes = []
        for level in range(self.levels):
            if level > 0:
                f2 = F.avg_pool2d(f2, 2)
            volume = points @ f2.flatten(2)
            volumes.append(volume.reshape(-1, 1, f2.shape[2], f2.shape[3]))
        return tuple(volumes)

    def lookup(self, state: tuple[Tensor, ...], coords: Tensor) -> Tensor:
        """See `AllPairs.lookup`: coords (b, 2, h, w) → (b, levels·u·v, h, w)."""
        b, _, h, w = coords.shape
        u, v = 2 * self.rx + 1, 2 * self.ry + 1
        offsets = window_offsets(u, v, dtype=coords.dtype, device=coords.device)
        centres = coords.permute(0, 2, 3, 1).reshape(-1, 2, 1, 1)
        out = []
        for level, volume in enumerate(state):
            places = centres / 2**level + offsets.T[:, None]  # (b·h·w, 2, 1, u·v)
            out.append(sample(volume, places).view(b, h * w, u * v))
        return torch.cat(out, dim=2).transpose(1, 2).reshape(b, -1, h, w)


def lookup_like(volume: AllPairs, lookup: str) -> GatheredPairs | SampledPairs:
    """The volume that gives the costs of this one by the named operator."""
    check_lookup(lookup)
    rx, ry = check_radius("lookup_like", volume.radius)
    kind = GatheredPairs if lookup == "gather" else SampledPairs
    return kind(volume.levels, rx, ry, volume.scale)


def sample_by_gather(
    x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tensor:
    """What `aten.grid_sampler` computes, without it: bilinear (mode 0) with zeros around (padding 0).

    x: (b, c, h, w), grid: (b, h', w', 2) in −1 … 1 → (b, c, h', w')
    """
    if mode != 0 or padding != 0 or align_corners:
        raise ArgumentError(
            f"sample_by_gather: mode is {mode}, padding {padding}, align_corners {align_corners}; "
            f"wanted 0, 0 and False, which is what `lcv.cost_volume.sample` asks for"
        )
    b, c, h, w = x.shape
    px = (((grid[..., 0] + 1) * w - 1) / 2).clamp(-2, w + 1)  # (b, h', w')
    py = (((grid[..., 1] + 1) * h - 1) / 2).clamp(-2, h + 1)
    x0, y0 = px.floor(), py.floor()
    fx, fy = (px - x0)[:, None], (py - y0)[:, None]
    ringed = F.pad(x, (1, 1, 1, 1)).flatten(2)

    def read(column: Tensor, row: Tensor) -> Tensor:
        place = (row.clamp(-1, h) + 1) * (w + 2) + column.clamp(-1, w) + 1
        flat = place.flatten(1)[:, None].expand(b, c, place.shape[1] * place.shape[2])
        return ringed.gather(2, flat).view(b, c, place.shape[1], place.shape[2])

    column, row = x0.long(), y0.long()
    above = (1 - fx) * read(column, row) + fx * read(column + 1, row)
    below = (1 - fx) * read(column, row + 1) + fx * read(column + 1, row + 1)
    return (1 - fy) * above + fy * below


def check_lookup(lookup: str) -> None:
    """Refuses a way that is not one of ours."""
    if lookup not in LOOKUPS:
        raise ArgumentError(f"export: lookup is {lookup!r}, wanted one of {', '.join(LOOKUPS)}")

"""Flow in overlapping tiles, each started from a coarse flow of the whole, blended without seams.

The frames are first made small enough to be matched in one piece. That coarse flow tells each tile
of frame 1 which part of frame 2 to look at, the tile moved by the median motion in it, and where
to start. Tiles overlap by at least a quarter of their side, and where they do, the weight passes
smoothly from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.conventions import pixel_grid
from lcv.cost_volume.sample import sample
from lcv.predict.matching import Encoded, Matcher
from lcv.predict.pairs import Flows, Wanted, with_companions

STRIDE = 8
OVERLAP = 0.25

Shift = tuple[int, int]  # by which a tile of frame 2 lies further right and further down
ShiftOf = Callable[[Tensor], Shift]


class Tiling(NamedTuple):
    """How an image is cut: where tiles begin along each axis, and their height and width.

    coarse: (h, w) of the frames of the coarse pass
    """

    tops: tuple[int, ...]
    lefts: tuple[int, ...]
    height: int
    width: int
    coarse: tuple[int, int]

    @property
    def number(self) -> int:
        """How many tiles there are."""
        return len(self.tops) * len(self.lefts)


class Seams(NamedTuple):
    """How much neighbouring tiles differ where they overlap: the sum of distances, and of what."""

    total: Tensor | float = 0.0
    pixels: int = 0

    @property
    def mean(self) -> float:
        """In pixels; 0 where nothing overlaps."""
        return float(self.total) / self.pixels if self.pixels else 0.0


def make_tiling(height: int, width: int, side: int, least: int) -> Tiling:
    """Tiles of side×side, or as long as the image where that is shorter.

    The coarse pass has at most the pixels of a tile, so that it takes no more memory than one.
    least: the least side that the network takes
    """
    tops, tall = _starts(height, side)
    lefts, wide = _starts(width, side)
    scale = min(1.0, math.sqrt(tall * wide / (height * width)))
    coarse = tuple(max(least, STRIDE * int(length * scale / STRIDE)) for length in (height, width))
    return Tiling(tops, lefts, tall, wide, (coarse[0], coarse[1]))


def match_tiles(
    matcher: Matcher,
    first: Encoded,
    second: Encoded,
    tiling: Tiling,
    wanted: Wanted,
    start: Tensor | None = None,
    shift_of: ShiftOf | None = None,
) -> tuple[Flows, Seams]:
    """The pair in tiles. start: for the coarse pass of the forward direction

    shift_of: how far to move a tile, given the coarse flow in it; by default its median
    """
    shift_of = shift_of or median_shift
    flow, low, seams = _one_way(matcher, first.image, second.image, tiling, shift_of, start)
    backward = None
    if wanted.both_ways:
        backward, _, more = _one_way(matcher, second.image, first.image, tiling, shift_of, None)
        seams = Seams(seams.total + more.total, seams.pixels + more.pixels)
    return with_companions(flow, low, backward, first.image, second.image, wanted), seams


def _one_way(
    matcher: Matcher,
    image1: Tensor,
    image2: Tensor,
    tiling: Tiling,
    shift_of: ShiftOf,
    start: Tensor | None,
) -> tuple[Tensor, Tensor | None, Seams]:
    h, w = image1.shape[2:]
    small1, small2 = (Encoded(_shrunk(image, tiling.coarse)) for image in (image1, image2))
    whole = matcher.match(small1, small2, start)
    coarse, low = whole.flow, whole.low
    del small1, small2
    flow = torch.zeros(1, 2, h, w, device=image1.device)
    down = _weights(tiling.tops, tiling.height, h, flow.device)
    across = _weights(tiling.lefts, tiling.width, w, flow.device)
    seams = Seams()
    above: list[Tensor] = []
    for row, top in enumerate(tiling.tops):
        beside: Tensor | None = None
        below: list[Tensor] = []
        for column, left in enumerate(tiling.lefts):
            tile = _tile(matcher, image1, image2, coarse, (top, left), tiling, shift_of)
            place = slice(top, top + tiling.height), slice(left, left + tiling.width)
            weight = down[row][:, None] * across[column]
            flow[:, :, place[0], place[1]] += weight * tile
            if beside is not None:
                seams = _compare(seams, beside, tile[..., : beside.shape[-1]])
            if above:
                seams = _compare(seams, above[column], tile[:, :, : above[column].shape[2]])
            beside = _overlap(tile, tiling.lefts, column, 3)
            below.append(_overlap(tile, tiling.tops, row, 2))
        above = below
    return flow, low, seams


def _tile(
    matcher: Matcher,
    image1: Tensor,
    image2: Tensor,
    coarse: Tensor,
    corner: tuple[int, int],
    tiling: Tiling,
    shift_of: ShiftOf,
) -> Tensor:
    """The flow of the tile of frame 1 at `corner`, (1, 2, tall, wide), in pixels of the image."""
    (h, w), (top, left) = image1.shape[2:], corner
    tall, wide = tiling.height, tiling.width
    start = _coarse_in(coarse, (h, w), corner, (tall, wide))
    right, down = shift_of(start)
    # The tile of frame 2 stays inside the image.
    right = min(max(left + right, 0), w - wide) - left
    down = min(max(top + down, 0), h - tall) - top
    tile1 = image1[:, :, top : top + tall, left : left + wide]
    tile2 = image2[:, :, top + down : top + down + tall, left + right : left + right + wide]
    start = moved(start, -right, -down) / STRIDE
    return moved(matcher.match(Encoded(tile1), Encoded(tile2), start).flow.float(), right, down)


def _coarse_in(
    coarse: Tensor, size: tuple[int, int], corner: tuple[int, int], tile: tuple[int, int]
) -> Tensor:
    """The coarse flow at every eighth pixel of a tile, in pixels of the image."""
    h, w = size
    small_h, small_w = coarse.shape[2:]
    rows, columns = (-(-side // STRIDE) for side in tile)
    grid = pixel_grid(rows, columns, device=coarse.device)
    # The middle of each cell of 8×8 pixels, in the image and then in the coarse flow.
    x = (corner[1] + STRIDE * grid[0] + (STRIDE - 1) / 2 + 0.5) * (small_w / w) - 0.5
    y = (corner[0] + STRIDE * grid[1] + (STRIDE - 1) / 2 + 0.5) * (small_h / h) - 0.5
    coords = torch.stack((x.clamp(0, small_w - 1), y.clamp(0, small_h - 1)))[None]
    there = sample(coarse.float(), coords)
    return torch.cat((there[:, :1] * (w / small_w), there[:, 1:] * (h / small_h)), dim=1)


def moved(flow: Tensor, right: int, down: int) -> Tensor:
    """The flow plus a constant."""
    return torch.cat((flow[:, :1] + right, flow[:, 1:] + down), dim=1)


def median_shift(flow: Tensor) -> Shift:
    """The median of each component, in whole pixels: half of the tile moves at most so far."""
    right, down = flow[0].flatten(1).median(dim=1).values.round().tolist()
    return int(right), int(down)


def _shrunk(image: Tensor, size: tuple[int, int]) -> Tensor:
    """The image with every pixel the mean of those it stands for."""
    return F.interpolate(image.float(), size=size, mode="area")


def _starts(length: int, side: int) -> tuple[tuple[int, ...], int]:
    """Where tiles of `side` begin so that they cover `length` evenly, and how long they are."""
    if length <= side:
        return (0,), length
    count = math.ceil((length - OVERLAP * side) / (side - OVERLAP * side))
    return tuple(round(i * (length - side) / (count - 1)) for i in range(count)), side


def _weights(starts: tuple[int, ...], side: int, length: int, device: torch.device) -> list[Tensor]:
    """A weight for each pixel of each tile along one axis; over all tiles they sum to one.

    Each is a raised cosine, 0 beyond the tile's ends and 1 in its middle, divided by the sum.
    """
    bump = torch.sin(math.pi * (torch.arange(side, device=device) + 0.5) / side).square()
    total = torch.zeros(length, device=device)
    for start in starts:
        total[start : start + side] += bump
    return [bump / total[start : start + side] for start in starts]


def _overlap(tile: Tensor, starts: tuple[int, ...], index: int, axis: int) -> Tensor:
    """The part of a tile that the next one along an axis covers too, as a copy."""
    side = tile.shape[axis]
    step = starts[index + 1] - starts[index] if index + 1 < len(starts) else side
    return tile.narrow(axis, step, side - step).clone() if step < side else tile.narrow(axis, 0, 0)


def _compare(seams: Seams, one: Tensor, other: Tensor) -> Seams:
    if one.numel() == 0:
        return seams
    distance = (one - other).square().sum(1).sqrt()
    return Seams(seams.total + distance.sum(), seams.pixels + distance.numel())

"""Flow in overlapping tiles, each started from a coarse flow of the whole, blended without seams.

The frames are first made small enough to be matched in one piece. That coarse flow tells each tile
of frame 1 which part of frame 2 to look at, the tile moved by the median motion in it, and where
to start. Tiles overlap by at least a quarter of their side, and where they do, the weight passes
smoothly from one to the next.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.conventions import pixel_grid
from lcv.cost_volume.sample import sample
from lcv.predict.matching import Encoded, Flows, Matcher, Wanted, with_companions

STRIDE = 8
OVERLAP = 0.25


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


def median_shift(flow: Tensor) -> tuple[int, int]:
    """By how much a tile of frame 2 lies further right and down: the median, in whole pixels."""
    right, down = flow[0].flatten(1).median(dim=1).values.round().tolist()
    return int(right), int(down)


def match_tiles(
    matcher: Matcher,
    first: Encoded,
    second: Encoded,
    tiling: Tiling,
    wanted: Wanted,
    start: Tensor | None = None,
) -> Flows:
    """The pair in tiles. start: for the coarse pass of the forward direction"""
    there = _OneWay(matcher, first.image, second.image, tiling, start)
    backward = None
    if wanted.both_ways:
        backward = _OneWay(matcher, second.image, first.image, tiling, None).blend()
    flows = Flows(there.blend(), there.low, backward, None, None)
    return with_companions(flows, (first.image, second.image), wanted)


class _OneWay:
    """One direction of a pair, matched coarsely."""

    def __init__(
        self, matcher: Matcher, image1: Tensor, image2: Tensor, tiling: Tiling, start: Tensor | None
    ) -> None:
        self.matcher, self.image1, self.image2, self.tiling = matcher, image1, image2, tiling
        # Every pixel of the small image is the mean of those it stands for.
        one, two = (
            Encoded(F.interpolate(x.contiguous().float(), size=tiling.coarse, mode="area"))
            for x in (image1, image2)
        )
        whole = matcher.match(one, two, start)
        self.coarse, self.low = whole.flow, whole.low

    def blend(self) -> Tensor:
        """The flow of the whole, (1, 2, h, w)."""
        tiling, (h, w) = self.tiling, self.image1.shape[2:]
        flow = torch.zeros(1, 2, h, w, device=self.image1.device)
        down = _weights(tiling.tops, tiling.height, h, flow.device)
        across = _weights(tiling.lefts, tiling.width, w, flow.device)
        for (row, top), (column, left) in product(enumerate(tiling.tops), enumerate(tiling.lefts)):
            place = flow[:, :, top : top + tiling.height, left : left + tiling.width]
            place += down[row][:, None] * across[column] * self._tile(top, left)
        return flow

    def _tile(self, top: int, left: int) -> Tensor:
        """The flow of the tile of frame 1 at (top, left), (1, 2, tall, wide), in the image's pixels."""
        h, w = self.image1.shape[2:]
        tall, wide = self.tiling.height, self.tiling.width
        start = self._coarse_in(top, left)
        right, down = median_shift(start)
        # The tile of frame 2 stays inside the image.
        right = min(max(left + right, 0), w - wide) - left
        down = min(max(top + down, 0), h - tall) - top
        tile1 = self.image1[:, :, top : top + tall, left : left + wide]
        y, x = top + down, left + right
        tile2 = self.image2[:, :, y : y + tall, x : x + wide]
        start = moved(start, -right, -down) / STRIDE
        flow = self.matcher.match(Encoded(tile1), Encoded(tile2), start).flow
        return moved(flow.float(), right, down)

    def _coarse_in(self, top: int, left: int) -> Tensor:
        """The coarse flow at every eighth pixel of a tile, in pixels of the image."""
        (h, w), (small_h, small_w) = self.image1.shape[2:], self.coarse.shape[2:]
        rows, columns = (-(-side // STRIDE) for side in (self.tiling.height, self.tiling.width))
        grid = pixel_grid(rows, columns, device=self.coarse.device)
        # The middle of each cell of 8×8 pixels, in the image and then in the coarse flow.
        x = (left + STRIDE * grid[0] + (STRIDE - 1) / 2 + 0.5) * (small_w / w) - 0.5
        y = (top + STRIDE * grid[1] + (STRIDE - 1) / 2 + 0.5) * (small_h / h) - 0.5
        coords = torch.stack((x.clamp(0, small_w - 1), y.clamp(0, small_h - 1)))[None]
        there = sample(self.coarse.float(), coords)
        return torch.cat((there[:, :1] * (w / small_w), there[:, 1:] * (h / small_h)), dim=1)


def moved(flow: Tensor, right: int, down: int) -> Tensor:
    """The flow plus a constant."""
    return torch.cat((flow[:, :1] + right, flow[:, 1:] + down), dim=1)


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

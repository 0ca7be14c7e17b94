"""The pairs that a patch is learned on: procedural ones, or those of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.recognise import recognise
from lcv.data.record import read_frame
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import FileError
from lcv.evaluate.calling import image_tensor

Frames = tuple[Tensor, Tensor, Tensor | None]
"""b pairs: two (b, 3, h, w) in 0 … 255, and their flow (b, 2, h, w) if it is known."""


def procedural_frames(
    recipe: str,
    batch: int,
    size: tuple[int, int],
    *,
    pool: int = 256,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Iterator[Frames]:
    """Endless procedural pairs, of the seeds and textures of training: the benchmark has others.

    About `pool` pairs are made and kept; after that their batches repeat, in a new order each time.
    """
    bank = procedural_bank("train", device=str(torch.empty(0, device=device).device))
    kept: list[Frames] = []
    for first in range(0, pool, batch):
        indices = range(first, first + batch)
        made = generate(RECIPES[recipe], seed, indices, size, device, textures=bank)
        kept.append((made.image1, made.image2, made.flow))
        yield kept[-1]
    for around in itertools.count():
        for index in _order(seed, around, len(kept)):
            yield kept[index]


def dataset_frames(
    data: str, *, seed: int = 0, device: torch.device | str = "cpu"
) -> Iterator[Frames]:
    """The frames of a dataset, pair after pair, again and again; truth is not read.

    They come at their own sizes, one at a time, in a new order each time.
    """
    records = [
        record
        for home, kind in recognise(data)
        for part in kind.survey(home).parts
        for record in part.dataset
    ]
    if not records:
        raise FileError(f"{data}: no pair of frames was found here, wanted at least one")
    for around in itertools.count():
        for index in _order(seed, around, len(records)):
            record = records[index]
            first, second = (
                image_tensor(read_frame(frame), torch.device(device)).float()
                for frame in (record.image1, record.image2)
            )
            yield first, second, None


def _order(seed: int, around: int, count: int) -> list[int]:
    order: list[int] = Draws(seed, [around]).words("order", (count,))[0].argsort().tolist()
    return order

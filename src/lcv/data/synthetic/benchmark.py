"""The ready benchmark split: 200 pairs that no training sees, defined by numbers alone.

    for batch in benchmark_pairs(device="cuda"):
        …

Its seed, its textures and its recipe are its own: TRAINING's indices never meet them. A table that
quotes it names the textures: "procedural" (the default, the same everywhere) or a folder's held-out
part.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lcv.data.synthetic.recipe import BENCHMARK
from lcv.data.synthetic.sequence import Batch, generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError

PAIRS = 200
SIZE = (368, 496)
SEED = 0x5EED_BE4C


def benchmark_pairs(
    batch: int = 8,
    device: torch.device | str = "cpu",
    *,
    textures: Tensor | None = None,
    count: int = PAIRS,
) -> Iterator[Batch]:
    """The pairs 0 … count − 1 of the split, in batches; the last batch may be smaller.

    textures: a bank on the device, e.g. load_bank(folder, "held-out"); by default the held-out
    procedural one. The numbers of a pair do not depend on `batch` or `device`.
    """
    if batch < 1 or not 1 <= count <= PAIRS:
        raise ArgumentError(
            f"benchmark_pairs: batch is {batch} and count is {count}; "
            f"wanted batch ≥ 1 and 1 ≤ count ≤ {PAIRS}"
        )
    if textures is None:
        textures = procedural_bank("held-out", device=str(torch.empty(0, device=device).device))
    for first in range(0, count, batch):
        indices = range(first, min(first + batch, count))
        yield generate(BENCHMARK, SEED, indices, SIZE, device, textures=textures)

"""Every recipe and development set gives the pairs that it always gave.

Our weights can be made again only if the pairs can. A change that is meant changes the numbers here
with it: `python tests/data/synthetic/test_recorded.py` writes them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import torch

from lcv.data.synthetic.development import DEVELOPMENT, development_batch
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank

RECORDED = Path(__file__).with_suffix(".json")
PAIRS, SIZE = range(5), (40, 56)
NAMES = [*(f"recipe {name}" for name in RECIPES), *(f"development {name}" for name in DEVELOPMENT)]


@cache
def bank() -> torch.Tensor:
    return procedural_bank("train", count=16, size=64)


def numbers(name: str) -> list[list[float]]:
    """For each pair: mean flow in x and y, mean |flow|, share occluded, mean of both frames."""
    kind, _, own = name.partition(" ")
    if kind == "development":
        made = development_batch(own, PAIRS, SIZE, textures=bank())
    else:
        made = generate(RECIPES[own], 7, PAIRS, SIZE, textures=bank())
    flow = made.flow.mean((2, 3))
    rest = (
        torch.linalg.vector_norm(made.flow, dim=1).mean((1, 2)),
        made.occluded.float().mean((1, 2, 3)),
        made.image1.mean((1, 2, 3)),
        made.image2.mean((1, 2, 3)),
    )
    found = torch.cat([flow, torch.stack(rest, dim=1)], dim=1)
    return [[round(float(number), 4) for number in pair] for pair in found]


@pytest.mark.parametrize("name", NAMES)
def test_the_pairs_are_those_it_always_gave(name):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    # Parameters are equal to the bit on all machines; a pixel on an outline may fall to either side.
    torch.testing.assert_close(
        torch.tensor(numbers(name)), torch.tensor(recorded), rtol=1e-3, atol=2e-3
    )


if __name__ == "__main__":
    lines = [f' "{name}": {json.dumps(numbers(name))}' for name in NAMES]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

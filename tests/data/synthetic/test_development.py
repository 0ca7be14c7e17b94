"""Development sets: fixed pairs, each of the motion that its name promises."""

from __future__ import annotations

import pytest
import torch

from lcv.data.synthetic.development import DEVELOPMENT, PAIRS, SEED, development_batch
from lcv.data.synthetic.development import SIZE as SIZE_OF_SETS
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.errors import ArgumentError

SIZE = (64, 88)


def test_sets_are_fixed_and_differ(bank):
    assert list(DEVELOPMENT) == [
        *("subpixel", "flat", "forward", "sideways", "street", "thin", "cylinders")
    ]
    assert (PAIRS, SIZE_OF_SETS, SEED) == (64, (320, 448), 1592647294)
    one = development_batch("thin", [3], (48, 72), textures=bank)
    same = generate(DEVELOPMENT["thin"], SEED + 5, [3], (48, 72), textures=bank)
    assert torch.equal(one.image2, same.image2)
    assert torch.equal(one.flow, same.flow)


def test_held_out_textures_are_the_default(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lcv.data.synthetic.development.procedural_bank",
        lambda part, device: asked.append(part) or torch.zeros(2, 3, 32, 32, dtype=torch.uint8),
    )
    development_batch("street", [0], (32, 48))
    assert asked == ["held-out"]


def test_sets_move_as_their_names_say(bank):
    lengths = {}
    for name in ("subpixel", "sideways", "street"):
        batch = development_batch(name, range(12), SIZE, textures=bank)
        lengths[name] = batch.flow.norm(dim=1)
        if name == "sideways":
            assert batch.out_of_frame.float().mean() > 0.03
            assert (batch.flow[:, 0].abs().mean() > 2 * batch.flow[:, 1].abs().mean()).item()
    assert lengths["subpixel"].quantile(0.9) < 1.5
    assert lengths["street"].max() > 20
    assert lengths["street"].median() < 6


def test_no_recipe_for_training_has_cylinders():
    assert DEVELOPMENT["cylinders"].round_probability > 0
    for recipe in RECIPES.values():
        assert all(kind.round_probability == 0 for _, kind in recipe.parts)


def test_refusals(bank):
    with pytest.raises(ArgumentError, match="there is no set 'flatt'; there are subpixel, flat"):
        development_batch("flatt", [0], textures=bank)
    with pytest.raises(ArgumentError, match=r"indices are \[3, 64\], wanted some of 0 … 63"):
        development_batch("flat", [3, 64], textures=bank)

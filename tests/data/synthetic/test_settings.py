"""Records of statistics: refusals, and what switching effects off keeps."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from lcv.data.synthetic.recipe import MIXED, TRAINING
from lcv.data.synthetic.settings import EFFECTS, Mixture, Recipe, Space
from lcv.errors import ArgumentError


def test_without_effects_keeps_scenes_and_motions():
    plain = TRAINING.without_effects()
    assert all(getattr(plain, name) == 0 for name in EFFECTS)
    assert replace(plain, **{name: getattr(TRAINING, name) for name in EFFECTS}) == TRAINING
    for (weight, kind), (same, before) in zip(
        MIXED.without_effects().parts, MIXED.parts, strict=True
    ):
        assert (weight, kind) == (same, before.without_effects())


def test_a_recipe_is_a_mixture_of_one_kind():
    assert TRAINING.parts == ((1.0, TRAINING),)


def test_recipes_are_frozen_and_refuse_what_cannot_be():
    with pytest.raises(FrozenInstanceError):
        TRAINING.layers = 3
    for changes, words in (
        ({"layers": 0}, "layers is 0, wanted 1 to 32"),
        ({"fog": 1.5}, "fog is 1.5, wanted a probability from 0 to 1"),
        ({"cut_probability": -0.1}, "cut_probability is -0.1, wanted a probability"),
        ({"speed_range": (2.0, 1.0)}, r"speed_range is \(2.0, 1.0\), wanted \(low, high\)"),
        ({"speed_range": (0.0, 1.0)}, "must begin above 0"),
        ({"object_shift": -1.0}, "object_shift is -1.0, wanted 0 or more"),
        ({"jpeg_quality": (10.0, 120.0)}, "wanted .* from 1 to 100"),
        ({"flat_objects": 2.0}, "flat_objects is 2.0, wanted a probability"),
        ({"objects": (3, 9)}, r"objects is \(3, 9\) with 8 layers, wanted .* from 0 to 7"),
        ({"layers": 3, "space": Space()}, "from 0 to -1; space needs 4 layers"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Recipe(**changes)
    with pytest.raises(ArgumentError, match="Space: wall_probability is 3, wanted a probability"):
        Space(wall_probability=3)
    with pytest.raises(ArgumentError, match=r"Mixture: the weights are \[\], wanted one or more"):
        Mixture(())

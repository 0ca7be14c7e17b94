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
        ({"trim_probability": 0.1, "round_probability": 0.1}, "both above 0, wanted one of them"),
        ({"objects": (3, 9)}, r"objects is \(3, 9\) with 8 layers, wanted .* from 0 to 7"),
        ({"layers": 3, "space": Space()}, "from 0 to -1; space needs 4 layers"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Recipe(**changes)
    with pytest.raises(ArgumentError, match="Space: wall_probability is 3, wanted a probability"):
        Space(wall_probability=3)
    with pytest.raises(ArgumentError, match=r"Mixture: the weights are \[\], wanted one or more"):
        Mixture(())


def test_what_is_just_possible():
    Recipe(layers=1)
    Recipe(layers=32, objects=(0, 31))
    Recipe(layers=4, space=Space(), objects=(0, 0))
    Recipe(fog=0.0, noise=1.0, flat_objects=1.0, objects=(3, 3), layers=4)
    Recipe(jpeg_quality=(1.0, 100.0), object_shift=0.0, speed_range=(0.1, 0.1))
    Mixture(((0.0, TRAINING), (0.1, TRAINING)))


def test_what_is_just_not_possible():
    for changes, words in (
        ({"layers": 33}, "layers is 33, wanted 1 to 32"),
        ({"objects": (-1, 3)}, r"objects is \(-1, 3\) with 8 layers"),
        ({"layers": 5, "space": Space(), "objects": (0, 2)}, "from 0 to 1; space needs 4 layers"),
        ({"object_size": (0.0, 1.0)}, "object_size and texture_scale must begin above 0"),
        ({"texture_scale": (0.0, 1.0)}, "object_size and texture_scale must begin above 0"),
        ({"jpeg_quality": (0.0, 50.0)}, r"jpeg_quality is \(0.0, 50.0\), wanted"),
        ({"noise": -0.1}, "noise is -0.1, wanted a probability"),
        ({"flat_objects": -0.1}, "flat_objects is -0.1, wanted a probability"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Recipe(**changes)
    with pytest.raises(ArgumentError, match=r"Space: focal is \(2.0, 1.0\), wanted \(low, high\)"):
        Space(focal=(2.0, 1.0))
    for weights in ((-1.0, 3.0), (0.0, 0.0)):
        with pytest.raises(ArgumentError, match="wanted one or more that are not negative"):
            Mixture(tuple((weight, TRAINING) for weight in weights))

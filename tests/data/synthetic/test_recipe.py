"""Recipes: refusals, and the motion that each ready one promises."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import MODERATE, QUICK, RECIPES, TRAINING, Recipe
from lcv.data.synthetic.render import flow_to, render
from lcv.data.synthetic.scene import draw_scene
from lcv.errors import ArgumentError

CHANCES = ("illumination", "illumination_change", "fog", "motion_blur", "noise", "jpeg")


def flow_lengths(recipe: Recipe, size: tuple[int, int], count: int, bank) -> torch.Tensor:
    """|flow| of `count` scenes, (count, h, w)."""
    lengths = []
    for first in range(0, count, 16):
        scene = draw_scene(recipe, Draws(1, range(first, first + 16)), size, 2, bank)
        lengths.append(flow_to(scene, render(scene, 0), 1).norm(dim=1))
    return torch.cat(lengths)


def test_training_moves_from_hundredths_of_a_pixel_to_a_third_of_the_image(bank):
    length = flow_lengths(TRAINING, (184, 248), 128, bank)
    # At half the size shifts are the same and turns and zooms move half as far.
    assert 14 < length.mean() < 24
    assert (length < 0.5).float().mean() > 0.002
    assert (length > 248 / 3).float().mean() > 0.005
    # Of ten scenes some move by less than two pixels and some by more than forty.
    per_scene = length.mean((1, 2))
    assert (per_scene < 2).float().mean() > 0.03
    assert (per_scene > 40).float().mean() > 0.03


@pytest.mark.parametrize(
    ("recipe", "size", "low", "high"),
    [(MODERATE, (184, 248), 3.5, 6.5), (QUICK, (96, 128), 4.0, 8.0), (QUICK, (64, 96), 4.0, 8.0)],
    ids=["moderate", "quick", "quick, smaller"],
)
def test_ready_recipes_move_as_far_as_they_say(recipe, size, low, high, bank):
    length = flow_lengths(recipe, size, 128 if size[0] < 100 else 96, bank)
    assert low < length.mean() < high


def test_ready_recipes_have_layers_enough_and_are_listed():
    assert QUICK.layers >= 3
    assert TRAINING.layers == 8
    assert RECIPES["training"] is TRAINING
    assert list(RECIPES) == [
        "training",
        "pretraining",
        "fine",
        "hidden",
        "moderate",
        "quick",
        "benchmark",
    ]


def test_without_effects_keeps_scenes_and_motions():
    plain = TRAINING.without_effects()
    assert (plain.fog, plain.noise, plain.jpeg, plain.illumination) == (0, 0, 0, 0)
    assert replace(plain, **{name: getattr(TRAINING, name) for name in CHANCES}) == TRAINING


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
    ):
        with pytest.raises(ArgumentError, match=words):
            Recipe(**changes)

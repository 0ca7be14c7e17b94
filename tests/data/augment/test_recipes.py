"""The authors' numbers, and recipes that make no sense."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lcv.data.augment import (
    AUGMENTATIONS,
    DDFLOW,
    RAFT_KITTI,
    Augmentation,
    Eraser,
    Geometry,
    Jitter,
)
from lcv.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "crop", "scale", "flips", "sparse"),
    [
        ("raft-chairs", (368, 496), (-0.1, 1.0), (0.5, 0.1), False),
        ("raft-things", (400, 720), (-0.4, 0.8), (0.5, 0.1), False),
        ("raft-sintel", (368, 768), (-0.2, 0.6), (0.5, 0.1), False),
        ("raft-sintel-kitti", (368, 768), (-0.3, 0.5), (0.5, 0.0), True),
        ("raft-sintel-hd1k", (368, 768), (-0.5, 0.2), (0.5, 0.0), True),
        ("raft-kitti", (288, 960), (-0.2, 0.4), (0.0, 0.0), True),
        ("ddflow", (320, 896), None, (0.5, 0.5), False),
    ],
)
def test_the_stages(
    name: str,
    crop: tuple[int, int],
    scale: tuple[float, float] | None,
    flips: tuple[float, float],
    sparse: bool,
) -> None:
    recipe = AUGMENTATIONS[name]
    g = recipe.geometry
    found = (g.crop, g.log2_scale, (g.flip_x, g.flip_y), recipe.sparse)
    assert found == (crop, scale, flips, sparse)


def test_only_ddflow_swaps_channels_and_only_raft_jitters() -> None:
    for name, recipe in AUGMENTATIONS.items():
        assert recipe.swap_channels == (name == "ddflow")
        assert (recipe.jitter is None) == (recipe.eraser is None) == (name == "ddflow")


def test_the_numbers_that_rafts_stages_share() -> None:
    for name, recipe in AUGMENTATIONS.items():
        g = recipe.geometry
        if name == "ddflow":
            assert (g.margin_y, g.margin_x, recipe.largest_flow) == ((0, 1), (0, 1), None)
            continue
        assert recipe.eraser == Eraser(probability=0.5, most=2, side=(50, 100))
        assert (g.stretch_probability, g.resize_probability) == (0.8, 0.8)
        found = (recipe.jitter, g.stretch, g.slack, g.margin_y, g.margin_x, recipe.largest_flow)
        if recipe.sparse:
            assert found == (Jitter(0.3, 0.3, 0.3, 0.3 / 3.14), 0, 1, (0, 20), (50, 50), None)
        else:
            assert found == (Jitter(0.4, 0.4, 0.4, 0.5 / 3.14, 0.2), 0.2, 8, (0, 0), (0, 0), 1000)


def test_a_crop_can_be_changed_and_nothing_else_changes() -> None:
    assert RAFT_KITTI.with_crop((64, 80)).with_crop((288, 960)) == RAFT_KITTI
    assert DDFLOW.with_crop((64, 80)).geometry.crop == (64, 80)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Geometry((0, 5)), r"crop is \(0, 5\)"),
        (lambda: Geometry((5, 5), log2_scale=(0.5, 0.2)), r"log2_scale is \(0.5, 0.2\)"),
        (lambda: Geometry((5, 5), stretch=-1), "stretch is -1"),
        (lambda: Geometry((5, 5), slack=-1), "slack is -1"),
        (lambda: Geometry((5, 5), margin_x=(0, -1)), r"margin_x is \(0, -1\)"),
        (lambda: Geometry((5, 5), flip_y=1.5), "flip_y is 1.5, wanted a probability"),
        (lambda: Jitter(-0.1, 0, 0, 0), "brightness is -0.1"),
        (lambda: Jitter(0, 0, 0, 0.6), "hue is 0.6, wanted 0 to 0.5"),
        (lambda: Jitter(0, 0, 0, 0, asymmetric=2), "asymmetric is 2"),
        (lambda: Eraser(most=0), "most is 0"),
        (lambda: Eraser(side=(9, 9)), r"side is \(9, 9\)"),
        (lambda: Eraser(probability=-1), "probability is -1"),
    ],
)
def test_nonsense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_recipes_can_be_compared_and_hashed() -> None:
    assert len({Augmentation(Geometry((4, 5))), Augmentation(Geometry((4, 5)))}) == 1


def test_what_is_just_possible() -> None:
    Geometry((1, 1), log2_scale=(0.5, 0.5), stretch=0.0, slack=0, flip_x=1.0, flip_y=0.0)
    Jitter(0.0, 0.0, 0.0, 0.5, asymmetric=1.0)
    Jitter(2.0, 2.0, 2.0, 0.0)
    Eraser(probability=0.0, most=1, side=(1, 2))


def test_what_is_just_not_possible() -> None:
    for make, message in (
        (lambda: Geometry((1, 0)), "crop is .1, 0., wanted"),
        (lambda: Geometry((4, 4, 4)), "crop is .4, 4, 4., wanted"),
        (lambda: Geometry((4, 4), log2_scale=(0.5, 0.4)), "wanted finite .low, high., low ≤ high"),
        (lambda: Geometry((4, 4), log2_scale=(0, float("inf"))), "wanted finite"),
        (lambda: Geometry((4, 4), stretch=-0.1), "stretch is -0.1, wanted 0 or more"),
        (lambda: Geometry((4, 4), slack=-1), "slack is -1, wanted 0 or more"),
        (lambda: Geometry((4, 4), margin_x=(0, -1)), "margin_x is .0, -1., wanted"),
        (lambda: Geometry((4, 4), margin_y=(-1, 0)), "margin_y is .-1, 0., wanted"),
        (lambda: Geometry((4, 4), flip_y=1.1), "Geometry: flip_y"),
        (lambda: Geometry((4, 4), resize_probability=-0.1), "Geometry: resize_probability"),
        (lambda: Jitter(0.1, -0.1, 0.1, 0.1), "contrast is -0.1, wanted 0 or more"),
        (lambda: Jitter(0.1, 0.1, float("inf"), 0.1), "saturation is inf, wanted"),
        (lambda: Jitter(0.1, 0.1, 0.1, 0.51), "hue is 0.51, wanted 0 to 0.5 of a turn"),
        (lambda: Jitter(0.1, 0.1, 0.1, 0.1, asymmetric=1.5), "Jitter: asymmetric"),
        (lambda: Eraser(probability=1.5), "Eraser: probability"),
        (lambda: Eraser(most=0), "most is 0, wanted 1 or more"),
        (lambda: Eraser(side=(0, 2)), "side is .0, 2., wanted"),
        (lambda: Eraser(side=(2, 2)), "side is .2, 2., wanted"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()

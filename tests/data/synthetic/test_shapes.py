"""Outlines: kinds, widths, and nothing beyond the grid."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.ndimage
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.settings import SURFACES, Recipe, Space
from lcv.data.synthetic.shapes import (
    GRID,
    KINDS,
    RIBBON,
    RING,
    coverage_depth,
    draw_kinds,
    draw_outlines,
    draw_thickness,
)

RADIUS = 100.0


def only(kind: str, **changes) -> Recipe:
    weights = tuple(float(name == kind) for name in KINDS)
    return replace(TRAINING, kinds=weights, **changes)


def fine_depth(recipe, seed=0, count=6, side=801) -> torch.Tensor:
    """d on a fine grid over [−1, 1]², for every object: (n·objects, side, side)."""
    draws = Draws(seed, range(count))
    radius = torch.full((count, recipe.layers - 1, 2), RADIUS)
    outlines = draw_outlines(recipe, draws, radius).flatten(0, 1)
    line = torch.linspace(-1, 1, side)
    u, v = line.expand(side, side), line[:, None].expand(side, side)
    shape = (len(outlines), side, side)
    return coverage_depth(outlines, u.expand(shape), v.expand(shape))


def test_depth_is_the_smaller_of_two_bilinear_fields():
    outline = torch.zeros(1, 2, GRID, GRID)
    outline[0, 0] = torch.linspace(-1, 1, GRID)  # u
    outline[0, 1] = torch.linspace(-1, 1, GRID)[:, None] * 2  # 2v
    u = torch.tensor([[[0.31, -0.2, 0.9]]])
    v = torch.tensor([[[0.05, 0.77, 5.0]]])
    expected = torch.tensor([[[0.1, -0.2, 0.9]]])
    assert torch.allclose(coverage_depth(outline, u, v), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_covers_something_and_nothing_near_or_beyond_the_border(kind):
    depth = fine_depth(only(kind), side=201)
    assert (depth > 0).flatten(1).any(1).float().mean() > 0.8
    assert depth[:, 0].max() <= -1
    assert depth[:, :, -1].max() <= -1
    beyond = torch.full((6, 1, 2), 3.0)
    outlines = draw_outlines(only(kind, layers=2), Draws(1, range(6)), torch.ones(6, 1, 2))
    assert coverage_depth(outlines[:, 0], beyond, -beyond).max() <= -1


def test_a_stick_one_pixel_thick_leaves_no_veil():
    recipe = only("stick", layers=2)
    radius = torch.tensor([[[200.0, 1.0]]]).expand(8, 1, 2)
    outlines = draw_outlines(recipe, Draws(2, range(8)), radius)
    u = torch.linspace(-1, 1, 401).expand(8, 1, 401)
    depth = coverage_depth(outlines[:, 0], u, torch.full_like(u, 1.01))
    assert depth.max() <= -0.5


def test_ribbons_keep_a_width_far_below_a_cell_of_the_grid():
    # A cell is 2·100/79 = 2.5 pixels; the ribbons are 1 pixel wide.
    recipe = only("ribbon", layers=4, thin=(0.5, 0.5))
    depth = fine_depth(recipe)
    covered = (depth > 0).float().flatten(1).mean(1) * (2 * RADIUS) ** 2
    # The same curves ten times as wide cover ten times as much, as nothing but width differs.
    wide = fine_depth(only("ribbon", layers=4, thin=(5.0, 5.0)))
    covered_wide = (wide > 0).float().flatten(1).mean(1) * (2 * RADIUS) ** 2
    ratio = covered_wide.sum() / covered.sum()
    assert 7 < ratio < 11
    assert depth.max() <= 0.5 + 1e-5


def test_depth_is_about_the_distance_to_the_outline():
    depth = fine_depth(only("ring", thin=(3.0, 3.0)))
    step = 2 * RADIUS / 800
    gx = (depth[:, 1:-1, 2:] - depth[:, 1:-1, :-2]) / (2 * step)
    gy = (depth[:, 2:, 1:-1] - depth[:, :-2, 1:-1]) / (2 * step)
    near = depth[:, 1:-1, 1:-1].abs() < 0.5
    steepness = (gx * gx + gy * gy).sqrt()[near]
    assert abs(steepness.median() - 1) < 0.1
    assert ((steepness > 0.5) & (steepness < 2)).float().mean() > 0.9


def test_holes_and_cuts_take_away_and_never_add():
    # At the knots of the grid: between them outlines differ by a part of a cell.
    plain = fine_depth(only("blob", cut_probability=0.0, hole_probability=0.0), side=GRID)
    holed = fine_depth(only("blob", cut_probability=0.0, hole_probability=1.0), side=GRID)
    cut = fine_depth(only("blob", cut_probability=1.0, hole_probability=0.0), side=GRID)
    for less in (holed, cut):
        assert not ((less > 0) & ~(plain > 0)).any()
        gone = ((plain > 0) & ~(less > 0)).flatten(1).float().mean(1)
        assert (gone > 0).float().mean() > 0.8


def test_compound_outlines_have_parts_added_and_taken_away():
    bare = {"cut_probability": 0.0, "hole_probability": 0.0}
    plain = fine_depth(only("blob", **bare), side=GRID) > 0
    parts = fine_depth(only("blob", compound_probability=1.0, **bare), side=GRID) > 0
    added, taken = (parts & ~plain).flatten(1).any(1), (plain & ~parts).flatten(1).any(1)
    assert added.float().mean() > 0.4
    assert taken.float().mean() > 0.4
    assert (parts == plain).float().mean() > 0.6


def test_legs_are_thin_reach_out_and_belong_to_their_body():
    bare = {"cut_probability": 0.0, "hole_probability": 0.0, "legs_probability": 1.0}
    depth = fine_depth(only("blob", **bare))
    line = torch.linspace(-1, 1, depth.shape[-1])
    rho = (line**2 + line[:, None] ** 2).sqrt()
    outside = ((depth > 0) & (rho > 0.62)).flatten(1).float().mean(1)
    assert (outside > 0.002).float().mean() > 0.8
    assert outside.mean() < 0.06
    pieces = [scipy.ndimage.label(each)[1] for each in (depth > 0).numpy()]
    assert sum(n == 1 for n in pieces) > 0.9 * len(pieces)


def test_surfaces_in_space_have_no_edge():
    recipe = only("blob", layers=6, space=Space())
    outlines = draw_outlines(recipe, Draws(0, range(3)), torch.full((3, 5, 2), RADIUS))
    assert (outlines[:, : SURFACES - 1] > 1e3).all()
    assert (outlines[:, SURFACES - 1 :, 1, 0] < 0).all()


def test_kinds_come_as_often_as_the_recipe_says():
    kinds = draw_kinds(TRAINING, Draws(0, range(2000))).flatten()
    share = torch.bincount(kinds, minlength=5) / kinds.numel()
    expected = torch.tensor(TRAINING.kinds)
    error = (expected * (1 - expected) / kinds.numel()).sqrt()
    assert ((share - expected).abs() < 5 * error).all()
    assert (RIBBON, RING) == (3, 4)
    thickness = draw_thickness(TRAINING, Draws(0, range(500)))
    assert thickness.min() >= TRAINING.thin[0]
    assert thickness.max() <= TRAINING.thin[1]

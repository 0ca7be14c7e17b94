"""Planes in space: safe maps, one camera for all of them, depths that stay true."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.maps import apply_map, plane
from lcv.data.synthetic.motion import Motion
from lcv.data.synthetic.planes import along, draw_planes
from lcv.data.synthetic.recipe import SPACE
from lcv.data.synthetic.settings import SURFACES, Space
from lcv.data.synthetic.space import LEAST, draw_pose, draw_space_motion

SIZE = (368, 496)
STILL = replace(SPACE, relief_probability=0.0, space=Space(moving=(0, 0)))


@pytest.fixture(scope="module")
def motion() -> Motion:
    return draw_space_motion(SPACE, Draws(1, range(300)), SIZE, 4)


def corners() -> tuple[torch.Tensor, torch.Tensor]:
    """The frame's corners, as x and y, (4,) each."""
    h, w = SIZE
    return torch.tensor([0.0, w - 1, 0, w - 1]).double(), torch.tensor(
        [0.0, 0, h - 1, h - 1]
    ).double()


def test_no_denominator_is_near_zero_anywhere_in_the_frame(motion):
    x, y = corners()
    last = motion.to_layer[..., 6:, None].double()
    # Linear in the frame, so its corners tell. Its inverse is the denominator of the other way.
    inverse = last[..., 0, :] * x + last[..., 1, :] * y + last[..., 2, :]
    assert inverse.min() > LEAST
    assert inverse.max() < 1 / LEAST
    assert inverse.max() > 1.1


def test_to_layer_inverts_to_frame(motion):
    x, y = corners()
    rows = motion.to_layer.double().movedim(-1, 0)[..., None]
    shape = (*rows.shape[1:-1], 4)
    there = apply_map(x.expand(shape), y.expand(shape), rows, True)
    back = apply_map(*there, motion.to_frame.double().movedim(-1, 0)[..., None], True)
    assert (back[0] - x).abs().max() < 1e-3
    assert (back[1] - y).abs().max() < 1e-3


def test_parameters_do_not_depend_on_batch_order_or_number_of_frames(motion):
    alone = draw_space_motion(SPACE, Draws(1, [17, 3]), SIZE, 2)
    for field in fields(Motion):
        whole, part = getattr(motion, field.name), getattr(alone, field.name)
        if not isinstance(whole, torch.Tensor):
            assert whole == part
        elif whole.shape[1] == 4:
            assert torch.equal(whole[[17, 3], :2], part), field.name
        else:
            assert torch.equal(whole[[17, 3]], part), field.name


def test_planes_that_meet_stay_together():
    """Where two planes at rest meet in the first frame, both go to one point and meet there."""
    motion = draw_space_motion(STILL, Draws(2, range(200)), SIZE, 2)
    far, ground = motion.inverse_depth[:, 0, :2].double().unbind(1)
    there = motion.inverse_depth[:, 0, 1, 2] != -1
    x = torch.full((200,), 100.0).double()
    y = ((far[:, 2] - ground[:, 2]) + (far[:, 0] - ground[:, 0]) * x) / (ground[:, 1] - far[:, 1])
    points = []
    for layer in (0, 1):
        own = apply_map(x, y, motion.to_layer[:, 0, layer].double().T, True)
        points.append(torch.stack(apply_map(*own, motion.to_frame[:, 1, layer].double().T, True)))
    inside = there & (y > 0) & (y < SIZE[0])
    assert inside.sum() > 60
    assert (points[0] - points[1])[:, inside].abs().max() < 2e-3
    assert (points[0] - torch.stack((x, y)))[:, inside].abs().max() > 20
    depths = [plane(*points[0], motion.inverse_depth[:, 1, k].double().T) for k in (0, 1)]
    assert torch.allclose(depths[0][inside], depths[1][inside], rtol=1e-2, atol=1e-5)


def test_only_cards_move_by_themselves_as_many_as_the_recipe_says(motion):
    assert not motion.independent[:, :SURFACES].any()
    assert torch.equal(motion.independent.sum(1).unique(), torch.arange(1, 4))
    present = motion.inverse_depth[:, 0, :, 2] != -1
    assert not (motion.independent & ~present).any()
    assert torch.equal(present[:, SURFACES:].sum(1).unique(), torch.arange(3, 11))


def test_cards_are_in_front_of_the_surfaces_at_their_centres():
    planes = draw_planes(SPACE, SPACE.space, Draws(3, range(200)), SIZE)
    x, y = planes.centre[:, SURFACES:].unbind(-1)
    surfaces = along(planes.plane[:, None, :SURFACES], x[..., None], y[..., None]).amax(-1)
    own = along(planes.plane[:, SURFACES:], x, y)
    assert (own > 1.1 * surfaces).all()
    # Standing cards' feet are on the ground, or would be if no wall were nearer.
    height = 1 / planes.plane[:, 1, 1]
    standing = planes.standing[:, SURFACES:]
    assert 0.2 < standing.double().mean() < 0.5
    feet = y + 0.7 * planes.radius[:, SURFACES:, 1] / planes.focal
    ground = (feet + planes.plane[:, 1:2, 2] * height[:, None]) / height[:, None]
    exact = ((ground - own).abs() < 1e-9)[standing]
    assert exact.double().mean() > 0.5


def test_forward_cameras_drive_and_sideways_ones_shift():
    draws = Draws(4, range(200))
    for weights, axis in (((1.0, 0.0, 0.0), 2), ((0.0, 1.0, 0.0), 0)):
        recipe = replace(SPACE, space=Space(cameras=weights, large_turn_probability=0.0))
        planes = draw_planes(recipe, recipe.space, draws, SIZE)
        pose, _ = draw_pose(recipe, recipe.space, draws, planes, SIZE)
        shift = pose.shift[:, 0].abs()
        assert (shift.argmax(1) == axis).double().mean() > 0.95


def test_scenes_move_as_far_as_the_recipe_says():
    recipe = replace(STILL, space=Space(moving=(0, 0), cameras=(0.0, 0.0, 1.0), turn=0.0,
                                        large_turn_probability=0.0, ground_probability=0.0,
                                        wall_probability=0.0))  # fmt: skip
    motion = draw_space_motion(recipe, Draws(5, range(400)), SIZE, 2)
    h, w = SIZE
    y, x = torch.meshgrid(torch.arange(8) * h / 8.0, torch.arange(8) * w / 8.0, indexing="ij")
    x, y = x.flatten().expand(400, -1), y.flatten().expand(400, -1)
    own = apply_map(x, y, motion.to_layer[:, 0, 0].T[..., None], True)
    there = apply_map(*own, motion.to_frame[:, 1, 0].T[..., None], True)
    median = torch.stack((there[0] - x, there[1] - y)).norm(dim=0).median(1).values
    # e^N(ln 4, 1.1) clipped to 0.1 … 100, slowed where it would come too near.
    assert 2.5 < median.median() < 5
    assert (median > 15).float().mean() > 0.03
    assert median.min() < 0.5

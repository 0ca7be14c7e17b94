"""Maps that invert, motions that add up, and objects that follow the camera."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.maps import apply_map
from lcv.data.synthetic.motion import STRAIN, draw_motion
from lcv.data.synthetic.recipe import TRAINING

SIZE = (368, 496)


def test_to_layer_inverts_to_frame():
    motion = draw_motion(TRAINING, Draws(1, range(50)), SIZE, 3)
    u, v = torch.tensor(0.3).double(), torch.tensor(-0.8).double()
    there = apply_map(u, v, motion.to_frame.double().movedim(-1, 0), True)
    back_u, back_v = apply_map(*there, motion.to_layer.double().movedim(-1, 0), True)
    # Both maps are rounded to float32: a few units in the last place of the frame's extent.
    pixels = motion.radius.double()[:, None]
    assert ((back_u - u).abs() * pixels[..., 0]).max() < 1e-3
    assert ((back_v - v).abs() * pixels[..., 1]).max() < 1e-3


def test_parameters_do_not_depend_on_batch_order_or_number_of_frames():
    together = draw_motion(TRAINING, Draws(1, range(20)), SIZE, 4)
    backwards = draw_motion(TRAINING, Draws(1, torch.arange(19, -1, -1)), SIZE, 4)
    alone = draw_motion(TRAINING, Draws(1, [13]), SIZE, 2)
    for name in ("to_frame", "to_layer", "bend", "wave", "radius"):
        whole = getattr(together, name)
        assert torch.equal(whole, getattr(backwards, name).flip(0))
        part = whole[13:14, :2] if name in ("to_frame", "to_layer", "bend") else whole[13:14]
        assert torch.equal(part, getattr(alone, name))


def test_the_first_frame_is_not_bent_and_no_bend_tears():
    motion = draw_motion(TRAINING, Draws(1, range(200)), SIZE, 3)
    assert not motion.bend[:, 0].any()
    rx, ry = motion.radius.unbind(-1)
    bend = motion.bend[:, 1:].abs().amax(1)
    assert not bend[..., 0, 1].any()
    assert not bend[..., 1, 0].any()
    tolerance = 1e-6
    assert (bend[..., 0, 0] * motion.wave[..., 0, 1] * rx / ry).max() <= STRAIN + tolerance
    assert (bend[..., 1, 1] * motion.wave[..., 1, 0] * ry / rx).max() <= STRAIN + tolerance
    # Bent layers are about as many as the recipe says: within five standard errors.
    bent = (motion.bend[:, 1] != 0).flatten(2).any(-1).float()
    p = TRAINING.warp_probability
    assert abs(bent.mean() - p) < 5 * (p * (1 - p) / bent.numel()) ** 0.5


def test_objects_that_do_not_move_by_themselves_follow_the_camera():
    still = replace(
        TRAINING,
        object_shift=0.0,
        object_turn=0.0,
        object_zoom=0.0,
        object_shear=0.0,
        warp_probability=0.0,
        camera_share=(1.0, 1.0),
    )
    motion = draw_motion(still, Draws(2, range(30)), SIZE, 3)
    first, later = motion.to_frame[:, 0].double(), motion.to_frame[:, 2].double()
    # The background carries the centre of every object from the first frame to the last.
    to_layer = motion.to_layer[:, 0, :1].double().movedim(-1, 0)
    u, v = apply_map(first[..., 2], first[..., 5], to_layer, True)
    x, y = apply_map(u, v, later[:, :1].movedim(-1, 0), True)
    assert (x - later[..., 2]).abs().max() < 1e-3
    assert (y - later[..., 5]).abs().max() < 1e-3
    assert (later[..., 2] - first[..., 2]).abs().max() > 10


@pytest.mark.parametrize("share", [0.0, 0.5, 1.3])
def test_objects_take_their_share_of_the_cameras_shift(share):
    shifts_only = replace(
        TRAINING,
        object_shift=0.0,
        background_turn=0.0,
        background_zoom=0.0,
        background_shear=0.0,
        camera_share=(share, share),
    )
    frames = draw_motion(shifts_only, Draws(2, range(9)), SIZE, 2).to_frame[..., [2, 5]]
    moved = frames[:, 1] - frames[:, 0]  # (n, L, 2)
    assert (moved[:, 1:] - share * moved[:, :1]).abs().max() < 1e-3
    assert moved[:, 0].abs().max() > 10


def test_shifts_keep_to_their_limit_and_speeds_to_their_range():
    wild = replace(TRAINING, speed_range=(4.0, 5.0), fast_probability=1.0, warp_probability=0.0)
    plain = replace(
        wild, background_turn=0.0, background_zoom=0.0, background_shear=0.0, background_shift=0.0
    )
    motion = draw_motion(plain, Draws(3, range(60)), SIZE, 2)
    moved = (motion.to_frame[:, 1] - motion.to_frame[:, 0])[..., [2, 5]]
    limit = torch.tensor([0.34 * 496, 0.34 * 368])
    assert (moved.abs() <= limit + 1e-3).all()
    assert (moved.abs() > limit - 1e-3).any()
    still = replace(plain, object_shift=0.0)
    rest = draw_motion(still, Draws(3, range(8)), SIZE, 2)
    assert torch.equal(rest.to_frame[:, 0, :, 2], rest.to_frame[:, 1, :, 2])


def test_motion_changes_from_step_to_step_by_the_recipe():
    shifts_only = replace(
        TRAINING, change=0.0, background_turn=0.0, background_zoom=0.0, background_shear=0.0
    )
    steady = draw_motion(shifts_only, Draws(5, range(40)), SIZE, 4).to_frame[:, :, :, 2].diff(dim=1)
    changing = draw_motion(replace(shifts_only, change=0.3), Draws(5, range(40)), SIZE, 4)
    changed = changing.to_frame[:, :, :, 2].diff(dim=1)
    assert (steady[:, 2] - steady[:, 0]).abs().max() < 1e-3
    assert torch.equal(changed[:, 0], steady[:, 0])
    # Each later step differs from the first by normals of 0.3 of the spread of a step.
    ratio = (changed[:, 1:, 0] - changed[:, :1, 0]).std() / changed[:, 0, 0].std()
    assert 0.2 < ratio < 0.4

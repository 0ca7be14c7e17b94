"""Maps that invert, motions that add up, and objects that follow the camera."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.maps import apply_map
from lcv.data.synthetic.motion import ABSENT, draw_motion
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
    for name in ("to_frame", "to_layer", "bend", "wave", "radius", "inverse_depth"):
        whole = getattr(together, name)
        assert torch.equal(whole, getattr(backwards, name).flip(0))
        part = whole[13:14] if name in ("wave", "radius") else whole[13:14, :2]
        assert torch.equal(part, getattr(alone, name))


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


def test_gentle_scenes_turn_and_zoom_less_and_still_ones_only_shift():
    wild = draw_motion(TRAINING, Draws(5, range(200)), SIZE, 2)
    gentle = replace(TRAINING, gentle=(-1.5, 0.0), still_probability=0.3)
    mild = draw_motion(gentle, Draws(5, range(200)), SIZE, 2)

    def change(motion):
        """How far each layer's linear part is from that of the first frame, in shares of it."""
        first, second = motion.to_frame[..., [0, 1, 3, 4]].unflatten(-1, (2, 2)).unbind(1)
        return (second @ torch.linalg.inv(first) - torch.eye(2)).flatten(-2).norm(dim=-1)

    # 10^U(−1.5, 0) has the median 0.18.
    assert 0.1 < change(mild)[:, 1:].median() / change(wild)[:, 1:].median() < 0.45
    still = (change(mild)[:, 0] < 1e-6).float().mean()
    assert abs(still - 0.3) < 5 * (0.3 * 0.7 / 200) ** 0.5


def test_a_drawn_number_of_objects_is_there():
    some = replace(TRAINING, layers=9, objects=(2, 6))
    depth = draw_motion(some, Draws(5, range(300)), SIZE, 2).inverse_depth
    there = depth[:, 0, :, 2] > 0
    assert there[:, 0].all()
    assert torch.equal(there[:, 1:].sum(1).unique(), torch.arange(2, 7))
    assert (depth[..., 2][~there[:, None].expand(-1, 2, -1)] == ABSENT).all()


def test_a_range_of_shifts_is_kept_and_mostly_level():
    far = replace(
        TRAINING,
        shift_range=(8.0, 80.0),
        level=0.1,
        speed_sigma=0.0,
        background_shift=0.0,
        background_turn=0.0,
        background_zoom=0.0,
        background_shear=0.0,
    )
    centre = draw_motion(far, Draws(6, range(300)), SIZE, 2).to_frame[..., [2, 5]]
    across, down = (centre[:, 1, 1:] - centre[:, 0, 1:]).abs().unbind(-1)
    assert 7.9 < across.min() < 9
    assert 72 < across.max() < 80.1
    assert (across.log().mean() - torch.tensor([8.0, 80.0]).log().mean()).abs() < 0.1
    assert (down / across).mean() < 0.15

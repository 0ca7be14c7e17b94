"""Colours: the orders, the factors, the mean of both frames, the channels."""

from __future__ import annotations

from itertools import permutations

import torch

from lcv.data.augment import reference
from lcv.data.augment.means import UNIT
from lcv.data.augment.photometric import (
    BRIGHTNESS,
    CONTRAST,
    HUE,
    SATURATION,
    Colours,
    change_colours,
    draw_colours,
    draw_swap,
    swap_channels,
    turn_hue,
)
from lcv.data.augment.recipes import Jitter
from lcv.data.random import Draws

RAFT = Jitter(0.4, 0.4, 0.4, 0.5 / 3.14, asymmetric=0.2)


def _frames(b: int, h: int = 5, w: int = 7) -> torch.Tensor:
    return 255 * torch.rand(b, 2, 3, h, w, dtype=torch.float64)


def test_every_order_equals_the_reference() -> None:
    orders = torch.tensor(list(permutations(range(4))))  # (24, 4)
    frames = _frames(24)
    factor = torch.tensor([1.3, 0.7, 1.35, -0.12]).expand(24, 2, 4)
    joint = torch.arange(24) % 2 == 0
    colours = Colours(torch.stack((orders, orders.flip(0)), 1), factor, joint)
    colours.order[joint, 1] = colours.order[joint, 0]
    out = change_colours(frames, torch.ones(24, 5, 7, dtype=torch.bool), colours)
    for k in range(24):
        order, factors = colours.order[k].tolist(), factor[k].tolist()
        if joint[k]:
            both = torch.cat((frames[k, 0], frames[k, 1]), 1)
            changed = reference.change_colours(both, order[0], factors[0])
            wanted = torch.stack((changed[:, :5], changed[:, 5:]))
        else:
            wanted = torch.stack(
                [reference.change_colours(frames[k, i], order[i], factors[i]) for i in (0, 1)]
            )
        torch.testing.assert_close(out[k], wanted, rtol=0, atol=2 / UNIT)


def test_factors_of_one_and_no_turn_change_nothing_but_rounding() -> None:
    frames = _frames(4)
    colours = draw_colours(Jitter(0.0, 0.0, 0.0, 0.0), Draws(0, range(4)))
    out = change_colours(frames, torch.ones(4, 5, 7, dtype=torch.bool), colours)
    torch.testing.assert_close(out, frames, rtol=0, atol=1e-12)


def test_draws_keep_their_bounds_and_every_order_comes() -> None:
    n = 6000
    colours = draw_colours(RAFT, Draws(1, range(n)))
    for change in (BRIGHTNESS, CONTRAST, SATURATION):
        factor = colours.factor[..., change]
        assert 0.6 <= factor.min() < 0.61
        assert 1.39 < factor.max() <= 1.4
    turn = colours.factor[..., HUE]
    assert -0.5 / 3.14 <= turn.min() < -0.155
    assert 0.155 < turn.max() <= 0.5 / 3.14
    code = (colours.order[:, 0] * torch.tensor([64, 16, 4, 1])).sum(-1)
    kinds, counts = code.unique(return_counts=True)
    assert len(kinds) == 24
    # Each order is binomial with p = 1/24: five deviations either side.
    assert (counts - n / 24).abs().max() < 5 * (n / 24) ** 0.5
    apart = ~colours.is_joint
    assert abs(apart.double().mean() - 0.2) < 0.03
    same = (colours.factor[:, 0] == colours.factor[:, 1]).all(-1)
    assert torch.equal(same, colours.is_joint)
    assert torch.equal(colours.order[~apart, 0], colours.order[~apart, 1])
    assert not torch.equal(colours.order[apart, 0], colours.order[apart, 1])


def test_sparse_colours_are_always_joint() -> None:
    assert draw_colours(Jitter(0.3, 0.3, 0.3, 0.3 / 3.14), Draws(1, range(500))).is_joint.all()


def test_frames_changed_alike_share_their_mean() -> None:
    """Contrast 0.5 of a black and a white frame: towards the grey between, not each its own."""
    frames = torch.stack((torch.zeros(3, 2, 3), torch.full((3, 2, 3), 255.0)))[None]
    order = torch.tensor([BRIGHTNESS, CONTRAST, SATURATION, HUE]).expand(1, 2, 4)
    factor = torch.tensor([1.0, 0.5, 1.0, 0.0]).expand(1, 2, 4)
    inside = torch.ones(1, 2, 3, dtype=torch.bool)
    joint = change_colours(frames, inside, Colours(order, factor, torch.tensor([True])))
    torch.testing.assert_close(joint[0, :, 0, 0, 0], torch.tensor([63.75, 191.25]))
    apart = change_colours(frames, inside, Colours(order, factor, torch.tensor([False])))
    torch.testing.assert_close(apart, frames)


def test_a_turned_hue_keeps_greatest_and_least_and_leaves_grey_alone() -> None:
    frames = _frames(3)
    turned = turn_hue(frames, torch.full((3, 2), 0.2, dtype=torch.float64))
    torch.testing.assert_close(turned.amax(2), frames.amax(2))
    torch.testing.assert_close(turned.amin(2), frames.amin(2))
    grey = frames[:, :, :1].expand_as(frames)
    assert torch.equal(turn_hue(grey, torch.full((3, 2), 0.2, dtype=torch.float64)), grey)
    back = turn_hue(turned, torch.full((3, 2), -0.2, dtype=torch.float64))
    torch.testing.assert_close(back, frames)


def test_channels_change_places_in_both_frames_alike() -> None:
    frames = _frames(2)
    out = swap_channels(frames, torch.tensor([[2, 0, 1], [0, 2, 1]]))
    assert torch.equal(out[0], frames[0][:, [2, 0, 1]])
    assert torch.equal(out[1], frames[1][:, [0, 2, 1]])


def test_every_order_of_the_channels_comes() -> None:
    swap = draw_swap(Draws(0, range(3000)))
    kinds, counts = swap.unique(dim=0, return_counts=True)
    assert len(kinds) == 6
    assert (counts - 500).abs().max() < 5 * 500**0.5

"""Bends and relief: nothing in the first frame, never too steep, as high as the recipe says."""

from __future__ import annotations

from dataclasses import replace

import torch

from lcv.data.random import Draws
from lcv.data.synthetic.bends import FARTHEST, OCTAVES, STRAIN, between, draw_relief, power_of_ten
from lcv.data.synthetic.maps import profile
from lcv.data.synthetic.motion import draw_motion
from lcv.data.synthetic.recipe import TRAINING

SIZE = (368, 496)
ROUGH = replace(TRAINING, relief_probability=0.75)


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


def test_relief_shears_at_right_angles_and_never_tears():
    radius = torch.tensor([[[248.0, 184.0], [60.0, 20.0]]]).double().expand(100, 2, 2)
    recipe = replace(ROUGH, layers=2, relief=(0.0, 0.0))
    bend, wave = draw_relief(recipe, Draws(2, range(100)), torch.full((100, 2), 9.0), radius, 3)
    assert bend.shape == (100, 3, 2, 3, 2)
    assert wave.shape == (100, 2, 3, 3 + 2 * (OCTAVES - 1))
    assert not bend[:, 0].any()
    # e·f = 0, so that a shear does not change what it depends on.
    assert (bend * wave[:, None, ..., :2]).sum(-1).abs().max() < 1e-9
    # The steepest slope in pixels: amplitude times the steepest of the profile, along f.
    theta = torch.linspace(0, 6.3, 400).double()
    slope = profile(theta, 0 * theta, wave[0, 0, 0, :, None].index_fill(0, torch.tensor(0), 1.0))
    steepest = (slope.diff() / theta.diff()).abs().max()
    pixels = (bend * radius[:, None, :, None]).norm(dim=-1)
    across = (wave[..., :2] / radius[:, :, None]).norm(dim=-1)
    assert (pixels * across[:, None]).max() * steepest <= STRAIN
    assert (pixels[:, 1] > 0).any()


def test_relief_grows_with_motion_up_to_a_limit():
    radius = torch.full((50, 2, 2), 1e4).double()  # so large that nothing is too steep
    recipe = replace(ROUGH, layers=2, relief_probability=1.0)

    def amplitude(moved: float) -> torch.Tensor:
        far = torch.full((50, 2), moved).double()
        return draw_relief(recipe, Draws(2, range(50)), far, radius, 2)[0][:, 1]

    assert torch.allclose(amplitude(10.0), 10 * amplitude(1.0))
    assert torch.equal(amplitude(FARTHEST), amplitude(5 * FARTHEST))
    high = amplitude(10.0)[:, :, 0].norm(dim=-1) * 1e4
    low_end, high_end = (10 * 10.0**exponent for exponent in recipe.relief)
    assert 0.49 * low_end < high.min()
    assert high.max() < high_end * 1.01


def test_powers_and_ranges():
    x = torch.tensor([-1.5, 0.0, 0.3]).double()
    assert torch.allclose(power_of_ten(x), 10**x, rtol=5e-3)
    draws = between(Draws(0, range(1000)), "length", (), (2.0, 50.0))
    assert 2 <= draws.min() < 2.1
    assert 47 < draws.max() < 50.3
    assert abs((draws < 10).double().mean() - 0.5) < 0.08  # 10 is their geometric mean

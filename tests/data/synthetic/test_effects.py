"""Each effect changes what it should, leaves the rest alone, and never moves anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.fft import dctn

from lcv.data.random import Draws
from lcv.data.synthetic.effects import (
    _jpeg_tables,
    add_fog,
    add_noise,
    blur_along,
    compress,
    light,
    sharpen,
)
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate

PLAIN = TRAINING.without_effects()
SIZE = (61, 90)
EFFECTS = {
    "fog": {"fog": 1.0},
    "motion_blur": {"motion_blur": 1.0},
    "illumination": {"illumination": 1.0},
    "illumination_change": {"illumination_change": 1.0},
    "sharpen": {"sharpen": 1.0},
    "noise": {"noise": 1.0},
    "jpeg": {"jpeg": 1.0},
}


def picture(n: int = 6, h: int = 64, w: int = 96) -> torch.Tensor:
    """Smooth bright and dark areas with an edge, (n, 3, h, w)."""
    x = torch.arange(w) / w
    y = torch.arange(h)[:, None] / h
    base = 120 + 60 * torch.sin(9 * x + 5 * y) + 40 * (x > 0.5)
    return torch.stack([base, 255 - base, 0.5 * base + 40]).expand(n, 3, h, w).contiguous()


@pytest.fixture(scope="module")
def plain(bank):
    return generate(PLAIN, 8, range(16), SIZE, textures=bank)


@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_changes_images_and_never_flow_or_occlusion(name, plain, bank):
    always = generate(replace(PLAIN, **EFFECTS[name]), 8, range(16), SIZE, textures=bank)
    for truth in ("flow", "backward", "occluded", "occluded_backward"):
        assert torch.equal(getattr(always, truth), getattr(plain, truth))
    for frame in ("image1", "image2"):
        found = getattr(always, frame)
        assert (found - getattr(plain, frame)).abs().flatten(1).amax(1).median() > 1
        assert found.min() >= 0
        assert found.max() <= 255


@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_befalls_only_as_many_scenes_as_it_should(name, plain, bank):
    half = dict.fromkeys(EFFECTS[name], 0.5)
    sometimes = generate(replace(PLAIN, **half), 8, range(16), SIZE, textures=bank)
    untouched = [torch.equal(a, b) for a, b in zip(sometimes.image1, plain.image1, strict=True)]
    always = generate(replace(PLAIN, **EFFECTS[name]), 8, range(16), SIZE, textures=bank)
    for k, spared in enumerate(untouched):
        # Those that it befalls are changed as if it befell all.
        assert spared or torch.equal(sometimes.image1[k], always.image1[k])
    # Of 16 scenes at one half, 2 to 14: all but once in a thousand.
    assert 2 <= sum(untouched) <= 14


def test_fog_is_a_smooth_veil_of_one_pale_colour_that_drifts():
    recipe, draws = replace(PLAIN, fog=1.0), Draws(0, range(6))
    black, white = torch.zeros(6, 3, 64, 96), torch.full((6, 3, 64, 96), 255.0)
    over_black, later = add_fog(recipe, draws, [black, black])
    over_white = add_fog(recipe, draws, [white])[0]
    clear = (over_white - over_black) / 255  # one minus the thickness
    assert torch.allclose(clear, clear[:, :1].expand_as(clear), atol=1e-5)
    assert clear.min() > 0.1
    assert clear.max() <= 1
    assert clear.diff(dim=-1).abs().max() < 0.05
    colour = over_black.sum((2, 3)) / (1 - clear).sum((2, 3))
    assert colour.min() > 120
    assert (later - over_black).abs().mean((1, 2, 3)).min() > 0.5


def test_blur_follows_the_motion_and_needs_one():
    recipe = replace(PLAIN, motion_blur=1.0, shutter=1.0)
    draws = Draws(0, range(6))
    stripes = (128 + 100 * torch.sin(torch.arange(96) * 0.9)).expand(6, 3, 64, 96).contiguous()
    along = torch.zeros(6, 2, 64, 96)
    along[:, 0] = 12.0
    across = along.flip(1)
    still, moved, slid = (
        blur_along(recipe, draws, [stripes], [path])[0]
        for path in (torch.zeros_like(along), along, across)
    )
    contrast = stripes.std()
    assert torch.allclose(still, stripes, atol=0.02)
    assert torch.allclose(slid, stripes, atol=0.02)
    assert moved.std() < 0.8 * contrast
    assert moved.mean() == pytest.approx(stripes.mean().item(), rel=0.02)


def test_light_that_does_not_change_is_one_function_of_the_pixel_and_its_place():
    draws = Draws(0, range(6))
    frames = [picture(), picture()]
    same = light(replace(PLAIN, illumination=1.0), draws, frames)
    assert torch.equal(same[0], same[1])
    other = light(replace(PLAIN, illumination=1.0, illumination_change=1.0), draws, frames)
    difference = (other[0] - other[1]).abs().mean((1, 2, 3))
    assert (difference > 0.5).all()
    # Brighter stays brighter at one place: order is kept.
    brighter = light(replace(PLAIN, illumination=1.0), draws, [picture() + 10])[0]
    assert (brighter >= same[0]).all()


def test_noise_has_the_deviation_drawn_and_no_pattern():
    recipe = replace(PLAIN, noise=1.0, noise_sigma=7.5)
    draws = Draws(0, range(20))
    grey = torch.full((20, 3, 64, 96), 128.0)
    first, second = (frame - 128 for frame in add_noise(recipe, draws, [grey, grey]))
    sigma = draws.uniform("noise sigma", (), 0, 7.5)
    count = 3 * 64 * 96
    # Five standard errors of a deviation, and of a correlation.
    assert ((first.flatten(1).std(1) / sigma - 1).abs() < 5 / (2 * count) ** 0.5).all()
    unit = first / sigma[:, None, None, None]
    for shifted in (
        second / sigma[:, None, None, None],
        unit.roll(1, 1),
        unit.roll(1, 2),
        unit.roll(1, 3),
    ):
        assert (unit * shifted).mean().abs() < 5 / (20 * count) ** 0.5


def test_compression_loses_more_at_lower_quality_and_nothing_of_flat_areas():
    draws = Draws(0, range(6))
    frame = picture(h=61, w=93)
    frame = frame + 20 * torch.sin(torch.arange(93.0) * 2.1)
    loss = {}
    for quality in (20.0, 60.0, 95.0):
        recipe = replace(PLAIN, jpeg=1.0, jpeg_quality=(quality, quality))
        pressed = compress(recipe, draws, [frame])[0]
        assert pressed.shape == frame.shape
        loss[quality] = (pressed - frame).abs().mean().item()
    assert loss[20.0] > 1.5 * loss[60.0] > 1.5 * loss[95.0] > 0
    # A flat grey has one coefficient, at most half a step of 16/8 grey levels off.
    flat = torch.full((6, 3, 61, 93), 77.0)
    recipe = replace(PLAIN, jpeg=1.0, jpeg_quality=(50.0, 50.0))
    assert (compress(recipe, draws, [flat])[0] - 77).abs().max() <= 1.1


def test_compression_pulls_cosine_coefficients_to_multiples_of_their_steps():
    draws = Draws(0, range(2))
    recipe = replace(PLAIN, jpeg=1.0, jpeg_quality=(50.0, 50.0))
    grey = (128 + 35 * torch.randn(2, 1, 64, 96)).expand(2, 3, 64, 96).contiguous()

    def off_the_steps(image: torch.Tensor) -> float:
        """Mean distance to a multiple of the first two rows of steps at quality 50."""
        blocks = image[:, 0].numpy().reshape(2, 8, 8, 12, 8).transpose(0, 1, 3, 2, 4) - 128
        rows = dctn(blocks, axes=(-2, -1), norm="ortho")[..., :2, :]
        steps = np.array([[16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55]])
        return np.abs(rows / steps - np.round(rows / steps)).mean().item()

    pressed = compress(recipe, draws, [grey])[0]
    # A pull x − sin(2πx)/2π of uniform x is 0.149 off on average, of a second one 0.079.
    assert off_the_steps(grey) > 0.2
    assert off_the_steps(pressed) < 0.1


def test_compression_is_continuous():
    draws = Draws(0, range(6))
    recipe = replace(PLAIN, jpeg=1.0, jpeg_quality=(30.0, 30.0))
    frame = picture() + 10 * torch.randn(6, 3, 64, 96)
    nudged = frame + 1e-3 * torch.randn_like(frame)
    change = compress(recipe, draws, [frame])[0] - compress(recipe, draws, [nudged])[0]
    # Rounding would jump by a step, several grey levels; each of the two pulls at most doubles.
    assert change.abs().max() < 0.1


def test_sharpening_adds_what_a_blur_takes_away_and_no_more():
    recipe = replace(PLAIN, sharpen=1.0, sharpen_amount=(2.0, 2.0))
    x = torch.arange(96)
    for period in (4, 8, 32):
        wave = 128 + 20 * torch.sin(2 * torch.pi * x / period).expand(6, 3, 64, 96)
        # The binomial's response to a wave of this period, cos⁴ of half its phase step.
        passed = np.cos(np.pi / period) ** 4
        found = sharpen(recipe, Draws(0, range(6)), [wave])[0] - 128
        inner = (..., slice(4, -4))
        assert torch.allclose(
            found[inner], ((wave - 128) * (1 + 2 * (1 - passed)))[inner], atol=1e-3
        )
    flat = torch.full((6, 3, 64, 96), 77.0)
    assert torch.allclose(sharpen(recipe, Draws(0, range(6)), [flat])[0], flat, atol=1e-4)


# Of seed 3, every effect on: red at three pixels of row 7, of two scenes at two times.
AS_EVER = {
    add_fog: (
        *(163.414, 162.887, 144.652, 178.398, 177.584, 173.424),
        *(143.030, 133.212, 125.666, 141.975, 140.250, 147.485),
    ),
    blur_along: (
        *(167.240, 162.818, 134.828, 167.346, 163.360, 135.495),
        *(123.145, 121.884, 107.632, 123.102, 121.902, 107.622),
    ),
    sharpen: (
        *(164.349, 164.818, 134.671, 164.110, 164.950, 134.596),
        *(122.174, 122.409, 107.335, 122.055, 122.475, 107.298),
    ),
    light: (
        *(145.412, 128.849, 113.070, 166.515, 171.452, 162.285),
        *(98.108, 89.485, 84.072, 144.051, 143.346, 139.948),
    ),
    add_noise: (
        *(167.372, 164.057, 138.800, 167.114, 167.938, 138.607),
        *(124.760, 128.948, 106.800, 127.821, 118.534, 109.688),
    ),
    compress: (
        *(162.922, 165.446, 135.107, 164.536, 168.001, 130.783),
        *(126.674, 121.204, 101.934, 123.306, 121.763, 109.838),
    ),
}


@pytest.mark.parametrize("effect", AS_EVER, ids=lambda effect: effect.__name__)
def test_a_seed_gives_the_pixels_that_it_always_gave(effect):
    """Weights and tables name recipe and seed alone; an effect of other strength is another recipe."""
    always = (
        "fog",
        "motion_blur",
        "sharpen",
        "illumination",
        "illumination_change",
        "noise",
        "jpeg",
    )
    recipe = replace(PLAIN, **dict.fromkeys(always, 1.0))
    frames = [picture(2, 40, 56), picture(2, 40, 56).flip(1)]
    paths = [torch.tensor([12.0, -30.0])[:, None, None].expand(2, 2, 40, 56)]
    slope = torch.linspace(-3, 3, 40 * 56).view(40, 56)
    paths.append(torch.stack([torch.ones(40, 56), slope]).expand(2, 2, 40, 56))
    given = (frames, paths) if effect is blur_along else (frames,)
    found = torch.stack(effect(recipe, Draws(3, range(2)), *given))
    assert found[:, :, 0, 7, [0, 9, 31]].flatten().tolist() == pytest.approx(
        AS_EVER[effect], rel=0, abs=0.01
    )


def test_the_tables_of_jpeg():
    """ITU T.81, annex K; JFIF's colours; an orthonormal cosine transform."""
    cosines, steps, to_ycc, to_rgb = _jpeg_tables.__wrapped__(torch.device("cpu"))
    assert torch.allclose(cosines @ cosines.T, torch.eye(64), atol=1e-6)
    block = torch.randn(8, 8)
    wanted = torch.from_numpy(dctn(block.numpy(), norm="ortho")).flatten()
    assert torch.allclose(cosines @ block.flatten(), wanted, atol=1e-5)
    assert steps.shape == (1, 3, 1, 64)
    luma, blue, red = steps[0, :, 0].int().tolist()
    assert (sum(luma), luma[0], luma[7], luma[63]) == (3688, 16, 61, 99)
    assert blue == red
    assert (sum(blue), blue[:4], blue.count(99)) == (5505, [17, 18, 24, 47], 51)
    assert torch.allclose(torch.tensor(to_ycc) @ torch.tensor(to_rgb), torch.eye(3), atol=1e-4)
    assert to_ycc[0] == [0.299, 0.587, 0.114]

"""The sliders' stresses: what they leave alone, and what they change."""

from __future__ import annotations

import numpy as np
import torch

from lcv.demo.stresses import Stresses, pattern
from lcv.studies.robustness import stress
from testing.footage import moving


def test_no_stress_changes_nothing():
    pair = moving(2)
    for frame, image in zip(pair, Stresses()(*pair), strict=True):
        assert torch.equal(image[0], torch.from_numpy(frame).movedim(2, 0).float())


def test_light_changes_both_frames_alike_and_noise_each_by_itself():
    frame = moving(1)[0]
    dark = Stresses(gamma=0.5)(frame, frame)
    assert torch.equal(*dark)
    assert float(dark[0].mean()) < frame.mean()
    grey = np.full((64, 72, 3), 128, np.uint8)
    first, second = Stresses(noise=10.0)(grey, grey)
    # 13,824 draws: their deviation is within 3 % of 10 with five standard errors of 0.6 %.
    assert abs(float((first - 128).std()) - 10) < 0.3
    assert abs(float(((first - 128) * (second - 128)).mean())) < 5 * 100 / 13_824**0.5


def test_the_patch_stands_still_and_touches_only_its_disc():
    pair = moving(2)
    stresses = Stresses(patch=40.0)
    clear = torch.from_numpy(stresses.untouched(pair[0].shape[:2]))
    area = float((~clear).sum())
    # 40 % of 64 rows; the disc's rim adds at most its length.
    radius = 0.2 * 64
    assert abs(area - np.pi * radius**2) < 2 * np.pi * radius
    first, second = stresses(*pair)
    before = torch.from_numpy(pair[0]).movedim(2, 0).float()
    assert torch.equal(first[0][:, clear], before[:, clear])
    assert torch.equal(first[0][:, ~clear], second[0][:, ~clear])
    assert Stresses().untouched((8, 9)).all()


def test_the_pattern_is_a_picture_of_high_contrast():
    assert pattern().shape[0] == 3
    assert float(pattern().min()) >= 0
    assert float(pattern().max()) <= 255
    assert float(pattern().std()) > 60


def test_the_pattern_is_finer_towards_the_middle():
    """Along a ray a colour turns by its speed, 9, 11 or 13, times the log of the distance."""
    bright = (pattern()[:, 80] > 127.5).int()  # the row through the middle
    for low, high in ((84, 92), (92, 119), (84, 159)):
        found = bright[:, low : high + 1].diff().abs().sum(1)
        turn = torch.tensor([9.0, 11.0, 13.0]) * np.log((high - 79.5) / (low - 79.5)) / np.pi
        assert (found - turn).abs().max() <= 1


def test_the_pattern_turns_about_its_middle():
    four_arms = pattern()[1]
    torch.testing.assert_close(four_arms.rot90(1), four_arms, rtol=0, atol=0.05)


def test_where_the_patch_is():
    """A little left of the middle and below it; at least a pixel wide."""
    covered = ~Stresses(patch=20.0).untouched((101, 201))
    y, x = (float(index.mean()) for index in np.nonzero(covered))
    assert abs(x - 0.42 * 200) < 0.5
    assert abs(y - 0.55 * 100) < 0.5
    assert abs(np.ptp(np.nonzero(covered)[0]) + 1 - 20.2) <= 1
    tiny = ~Stresses(patch=0.001).untouched((101, 201))
    assert tiny.sum() == 1, "84 and 55 are whole pixels"


def test_no_stress_is_the_default():
    assert (Stresses().gamma, Stresses().noise, Stresses().patch) == (1, 0, 0)


def test_each_frame_has_noise_of_its_own_and_always_the_same():
    grey = np.full((8, 9, 3), 128, np.uint8)
    stresses = Stresses(noise=20.0)
    first, second = stresses(grey, grey)
    assert torch.equal(first, stresses.frame(grey, 0))
    assert torch.equal(second, stresses.frame(grey, 1))
    assert not torch.equal(first, second)
    image = torch.full((1, 3, 8, 9), 128.0)
    assert torch.equal(first, stress.noise(image, (20 / 255) ** 2, 0, frame=0))


def test_the_pattern_is_three_spirals():
    """Of five, four and three arms, the second turning the other way, the third running inwards."""
    assert pattern().shape == (3, 160, 160)
    y, x = np.meshgrid(np.linspace(-1, 1, 160), np.linspace(-1, 1, 160), indexing="ij")
    angle, depth = np.arctan2(y, x), np.log(np.maximum(np.hypot(x, y), 0.03))
    spirals = (5 * angle + 9 * depth, -4 * angle + 11 * depth + 2.1, 3 * angle - 13 * depth + 4.2)
    for found, wave in zip(pattern(), map(np.sin, spirals), strict=True):
        assert np.allclose(found, 255 / (1 + np.exp(-4 * wave)), atol=0.05)

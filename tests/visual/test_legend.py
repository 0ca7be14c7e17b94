"""Legends say what the colours mean, and the printed scale gives the same picture again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.visual.error_maps import KITTI_COLOURS
from lcv.visual.legend import (
    grey_key,
    key_cell,
    kitti_key,
    px,
    readable_scale,
    wheel_key,
    with_key,
)


@settings(max_examples=200, deadline=None)
@given(scale=st.floats(1e-5, 1e9))
def test_a_readable_scale_is_no_smaller_has_three_digits_and_is_its_own(scale):
    readable = readable_scale(scale)
    assert scale <= readable <= scale * 1.01 * (1 + 1e-12)
    assert float(f"{readable:.3g}") == readable
    assert readable_scale(readable) == readable
    assert float(f"{readable:g}") == readable  # what the command line prints
    assert px(readable) == f"{readable:.3g} px" or readable >= 1000


@pytest.mark.parametrize(
    ("scale", "wanted"), [(1.1, 1.1), (13.62, 13.7), (0.57, 0.57), (1001, 1010)]
)
def test_readable_scales_by_hand(scale, wanted):
    assert readable_scale(scale) == wanted


def test_the_wheel_has_its_directions_and_words_under_it():
    key = wheel_key(12.5, 99)
    assert key.shape[1] == 99
    assert key[49, 94].tolist() == pytest.approx([255, 12, 12], abs=24)  # right is red
    assert (key[:99, 0] == 255).all() or key[49, 0].any()
    assert (key[103:] < 128).any()
    assert not np.array_equal(key, wheel_key(25.0, 99))


def test_the_bar_of_kitti_has_its_ten_colours_in_order():
    key = kitti_key(240)
    column = key[:, 9]
    found = [tuple(colour) for colour in column.tolist() if tuple(colour) in set(KITTI_COLOURS)]
    order = list(dict.fromkeys(found))
    assert order == list(reversed(KITTI_COLOURS))


def test_the_grey_bar_runs_from_white_to_black():
    grey = grey_key(5.0, 220)[:, 9, 0].astype(int)
    ramp = grey[np.argmax(grey == 150) + 1 :]  # after the frame's upper line
    ramp = ramp[: np.argmax(ramp == 0)]
    assert ramp[0] == 255
    assert (np.diff(ramp) <= 0).all()


def test_a_picture_beside_its_legends_is_whole():
    picture = np.full((50, 70, 3), 9, np.uint8)
    page = with_key(picture, wheel_key(1.0, 30), grey_key(1.0, 80))
    assert np.array_equal(page[:50, :70], picture)
    assert page.shape[0] > 50
    assert (page[:, 70:82] == 255).all()


@pytest.mark.parametrize("size", [(40, 60), (200, 300)])
def test_legends_fit_their_cell(size):
    cell = key_cell(*size, wheel_key(3.0, 84), kitti_key(170))
    assert cell.shape == (*size, 3)
    border = np.concatenate([cell[0], cell[-1], cell[:, 0], cell[:, -1]])
    assert (border > 200).all()
    assert (cell < 128).any()

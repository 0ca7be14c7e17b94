"""Legends say what the colours mean, and the printed scale gives the same picture again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.visual import legend as module
from lcv.visual.colours import wheel_legend
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


@pytest.fixture
def plain_words(monkeypatch):
    """Letters of 6 pixels, and strips of one level instead of words; what was to be written."""
    said = []

    def strip(text, width, size, lines=None, align="middle"):
        said.append((text, width, size, align))
        return np.full((18 * (text.count("\n") + 1), width, 3), 7, np.uint8)

    monkeypatch.setattr(module, "text_strip", strip)
    monkeypatch.setattr(
        module, "width_of", lambda text, size: 6 * max(len(line) for line in text.split("\n"))
    )
    return said


def runs(column):
    """Equal neighbours: (value, how many)."""
    found = []
    for value in column:
        if found and found[-1][0] == value:
            found[-1][1] += 1
        else:
            found.append([value, 1])
    return [tuple(each) for each in found]


def test_the_bar_of_kitti_line_by_line(plain_words):
    key = kitti_key(240)
    assert key.shape == (240, 74, 3)  # 12 letters and 2 pixels wide; 18 a line of text
    assert plain_words == [
        *((word, 24, 12, "left") for word in ("1/16", "1/8", "1/4", "1/2", *"1248", "16")),
        ("1 = outlier:\n3 px and 5 %", 74, 12, "middle"),
    ]
    white, frame, bar = (255, 255, 255), (150, 160, 168), [tuple(c) for c in KITTI_COLOURS[::-1]]
    sizes = [18, 19, 18, 19, 18, 18, 19, 18, 19, 18]  # 18.4 each
    title = [((7, 7, 7), 36)]
    inside = [(white, 9), (frame, 1), *zip(bar, sizes, strict=True), (frame, 1), (white, 9)]
    for column in (1, 18):
        assert runs(map(tuple, key[:, column].tolist())) == inside + title
    for column in (0, 19):
        assert runs(map(tuple, key[:, column].tolist())) == [
            *((white, 9), (frame, 186), (white, 9)),
            *title,
        ]
    ticks = [28, 47, 65, 83, 102, 120, 138, 156, 175]
    for column in (20, 22):
        assert [y for y in range(204) if key[y, column].tolist() == [34, 48, 60]] == ticks
    assert (key[:204, 23:26] == 255).all()
    assert (key[:204, 50:] == 255).all()
    words = (key[:204, 26:50] == 7).all(2)
    assert words.all(1).tolist() == [any(y - 9 <= k < y + 9 for y in ticks) for k in range(204)]
    assert (words.all(1) == words.any(1)).all()


def test_a_short_bar_of_kitti_has_every_other_word(plain_words):
    assert len(kitti_key(216)) == 216
    assert len(plain_words) == 10
    plain_words.clear()
    assert len(kitti_key(215)) == 215
    assert [word for word, *_ in plain_words[:-1]] == ["1/16", "1/4", "1", "4", "16"]
    assert len(kitti_key(20)) == 16 + 2 * 10 + 36  # as small as it gets
    assert np.array_equal(kitti_key(), kitti_key(200))


def test_the_grey_bar_line_by_line(plain_words):
    key = grey_key(5.0, 294)
    assert key.shape == (294, 56, 3)
    assert plain_words == [
        *((word, 18, 12, "left") for word in ("0", "2.5", "5+")),
        ("error, px", 56, 12, "middle"),
    ]
    assert key[10:266, 9, 0].tolist() == list(range(255, -1, -1))
    assert [y for y in range(276) if key[y, 21].tolist() == [34, 48, 60]] == [10, 138, 265]
    plain_words.clear()
    grey_key(0.25, title="length")
    assert [word for word, *_ in plain_words] == ["0", "0.125", "0.25+", "length, px"]
    assert np.array_equal(grey_key(3.0), grey_key(3.0, 200))


def test_the_wheel_is_drawn_three_times_as_large_and_reduced(plain_words):
    key = wheel_key(12.5, 100)
    assert key.shape == (140, 100, 3)
    fine = wheel_legend(300).reshape(100, 3, 100, 3, 3).mean((1, 3))
    assert np.abs(key[:100] - fine).max() <= 1  # rows and columns are rounded one after the other
    assert (key[100:104] == 255).all()
    assert (key[104:] == 7).all()
    assert wheel_key(1234.5).shape == (136, 96, 3)
    wheel_key(0.5, 87)
    assert plain_words == [
        ("12.5 px\nat the rim", 100, 12, "middle"),
        ("1234 px\nat the rim", 96, 12, "middle"),
        ("0.5 px\nat the rim", 87, 11, "middle"),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.12345, "0.123 px"), (999, "999 px"), (1000, "1000 px"), (1999, "1999 px")],
)
def test_lengths_in_words(value, words):
    assert px(value) == words


def test_legends_beside_a_picture_are_in_the_middle_of_its_height():
    picture = np.full((50, 70, 3), 9, np.uint8)
    first, second = np.full((10, 20, 3), 1, np.uint8), np.full((8, 30, 3), 2, np.uint8)
    page = with_key(picture, first, second)
    assert page.shape == (50, 70 + 12 + 30 + 12, 3)
    wanted = np.full((50, 124), 255)
    wanted[:, :70] = 9
    wanted[10:20, 82:102] = 1
    wanted[32:40, 82:112] = 2
    assert (page == wanted[..., None]).all()
    assert with_key(picture[:5], first, second, gap=3).shape == (21, 106, 3)


def test_a_picture_like_a_thread_goes_without_a_legend():
    thread, key = np.zeros((1, 20_001, 3), np.uint8), np.ones((30, 20, 3), np.uint8)
    assert with_key(thread, key) is thread
    assert with_key(thread[:, :-1], key).shape == (30, 20_000 + 44, 3)
    upright = thread.transpose(1, 0, 2)
    assert with_key(upright, key) is upright
    assert with_key(upright[:-1], key).shape == (20_000, 1 + 44, 3)
    tall = np.zeros((30, 20_001, 3), np.uint8)
    assert with_key(tall, key).shape == (30, 20_001 + 44, 3)


def test_legends_in_a_cell_are_side_by_side_in_its_middle():
    first, second = np.full((20, 10, 3), 10, np.uint8), np.full((8, 30, 3), 200, np.uint8)
    wanted = np.full((41, 111), 255)
    wanted[10:30, 26:36] = 10
    wanted[16:24, 54:84] = 200
    assert (key_cell(41, 111, first, second) == wanted[..., None]).all()
    # Half as large where there is half the room: 94 × 20 in all, with 18 beside each.
    small = key_cell(10, 60, first, second)
    assert (small[:, 6 + 9 : 6 + 14] < 80).all()
    assert (np.abs(small[3:6, 6 + 24 : 6 + 37].astype(int) - 200) < 20).all()
    assert (small[:, :13] > 240).all()
    assert (small[:, -15:] > 240).all()

"""A grid of pictures: nothing is lost, nothing overlaps, and the words stay in their cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.layout import label_size, side_by_side
from lcv.visual.text import drawable, fitting, line_height, text_strip, width_of


def plain(height, width, level):
    return np.full((height, width, 3), level, np.uint8)


def test_two_by_hand():
    left, right = plain(2, 3, 10), plain(2, 4, 20)
    page = side_by_side([left, right], gap=1)
    assert page[..., 0].tolist() == [[10, 10, 10, 255, 20, 20, 20, 20]] * 2


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=7),
    columns=st.none() | st.integers(1, 9),
    gap=st.integers(0, 3),
)
def test_every_picture_is_whole_in_it(sizes, columns, gap):
    pictures = [plain(*size, 10 + k) for k, size in enumerate(sizes)]
    page = side_by_side(pictures, columns=columns, gap=gap)
    for k, size in enumerate(sizes):
        rows, places = np.nonzero(page[..., 0] == 10 + k)
        box = (np.ptp(rows) + 1, np.ptp(places) + 1)
        assert box == size
        assert len(rows) == size[0] * size[1]
    assert (page[..., 0] == 255).sum() == page[..., 0].size - sum(h * w for h, w in sizes)


def test_words_are_under_their_picture_and_nowhere_else():
    pictures = [plain(30, 200, 100), plain(30, 200, 100)]
    page = side_by_side(pictures, ["here", ""], gap=6)
    assert page.shape[1] == 406
    below = page[30:]
    assert (below[:, :200] < 128).any()
    assert (below[:, 200:] == 255).all()
    assert np.array_equal(page[:30, :200], pictures[0])


@pytest.mark.parametrize("label", ["", " ", "g", "EPE 3.14 px", 60 * "W", "光流", "\t\x00\ud800"])
def test_the_size_does_not_depend_on_the_words(label):
    page = side_by_side([plain(20, 90, 0)], [label])
    assert page.shape == side_by_side([plain(20, 90, 0)], ["EPE"]).shape


def test_more_lines_make_room_for_the_whole_row():
    one = side_by_side([plain(9, 90, 0)] * 2, ["a", "b"])
    two = side_by_side([plain(9, 90, 0)] * 2, ["a\nEPE 1", "b"])
    assert two.shape[0] - 9 == 2 * (one.shape[0] - 9)


@pytest.mark.parametrize("width", [40, 90, 300])
def test_a_long_text_shrinks_and_then_loses_its_end(width):
    text = "a method with a name that nobody can remember, nor wants to"
    shown, size = fitting(text, 20, width)
    assert width_of(shown, size) <= width
    assert shown.endswith("…") == (width < 300)
    assert (text_strip(text, width, 20)[:, [0, -1]] == 255).all()


def test_letters_that_the_font_lacks_are_spelled_or_marked():
    assert drawable("W = 2 × 3 → λ") == "W = 2 x 3 -> lambda"
    assert drawable("é") in ("é", "e")
    assert drawable("流\n流") == "?\n?"


def test_refusals():
    with pytest.raises(ArgumentError, match="there are no pictures"):
        side_by_side([])
    with pytest.raises(ArgumentError, match="1 labels for 2 pictures"):
        side_by_side([plain(2, 2, 0)] * 2, ["a"])
    with pytest.raises(ArgumentError, match="columns is 0"):
        side_by_side([plain(2, 2, 0)], columns=0)
    with pytest.raises(ArgumentError, match="gap is -1"):
        side_by_side([plain(2, 2, 0)], gap=-1)
    with pytest.raises(ShapeError, match=r"picture 1 has shape \(2, 2\) of float64"):
        side_by_side([plain(2, 2, 0), np.zeros((2, 2))])


@pytest.mark.parametrize(
    ("width", "size"), [(10, 11), (286, 11), (287, 12), (312, 12), (650, 25), (676, 26), (2000, 26)]
)
def test_the_letters_suit_the_picture(width, size):
    assert label_size(width) == size


def test_smaller_pictures_are_in_the_middle_of_their_cell():
    page = side_by_side([plain(5, 4, 1), plain(2, 2, 2), plain(1, 1, 3)], columns=2)
    wanted = np.full((5 + 4 + 1, 4 + 4 + 2), 255)
    wanted[:5, :4] = 1
    wanted[1:3, 8:10] = 2
    wanted[9, 1] = 3
    assert (page == wanted[..., None]).all()


def test_words_row_by_row():
    """Each row has the room of its own longest label, in letters of one size."""
    pictures = [plain(9, 90, 0)] * 3
    page = side_by_side(pictures, ["a", "b", "c\nd"], columns=2, gap=2)
    line = line_height(11)
    assert page.shape == (9 + line + 2 + 9 + 2 * line, 182, 3)
    assert np.array_equal(page[9 : 9 + line, 92:], text_strip("b", 90, 11, 1))
    assert np.array_equal(page[-2 * line :, :90], text_strip("c\nd", 90, 11, 2))
    assert (page[9 + line + 2 :, 90:] == 255).all()


@pytest.mark.parametrize(
    "picture",
    [
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((2, 2, 3), np.float32),
        np.zeros((0, 2, 3), np.uint8),
        np.zeros((2, 2), np.uint8),
    ],
)
def test_what_is_no_picture(picture):
    with pytest.raises(ShapeError, match=r"picture 0 has shape .*, wanted \(h, w, 3\) of uint8"):
        side_by_side([picture])
    assert side_by_side([plain(2, 2, 5)], columns=1, gap=0).shape == (2, 2, 3)

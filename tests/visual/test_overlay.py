"""Arrows begin where their pixel is and end where the flow takes it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from lcv.errors import ArgumentError, ShapeError
from lcv.visual import overlay as module
from lcv.visual.overlay import arrow_stretch, draw_arrows, stretch_for


def drawn(flow, spacing, **options):
    """Where the picture was changed."""
    height, width = flow.shape[:2]
    grey = np.full((height, width, 3), 128, np.uint8)
    return np.abs(draw_arrows(grey, flow, spacing, **options).astype(int) - 128).max(2) > 40


@pytest.mark.parametrize("motion", [(20, 0), (0, -20), (-14, 14), (9, 3)])
def test_one_arrow_covers_the_way_and_no_more(motion):
    """One arrow, at the middle of a frame no larger than a step."""
    flow = np.broadcast_to(np.array(motion, np.float32), (61, 61, 2))
    rows, places = np.nonzero(drawn(flow, 61))
    for found, step in ((places, motion[0]), (rows, motion[1])):
        low, high = sorted((30, 30 + step))
        # The head is wider than the shaft, and both have an edge.
        assert low - 10 <= found.min() <= low + 2
        assert high - 2 <= found.max() <= high + 10
    assert drawn(flow, 61)[30, 30]


def test_one_arrow_a_cell_and_dots_where_nothing_moves():
    dots = drawn(np.zeros((32, 48, 2)), 16)
    assert dots[8::16, 8::16].all()
    assert dots.sum() < 6 * 16
    assert not dots[::16].any()


def test_stretch_makes_them_longer():
    flow = np.zeros((41, 81, 2))
    flow[..., 0] = 5
    once, thrice = (np.nonzero(drawn(flow, 81, stretch=s))[1].max() for s in (1.0, 3.0))
    assert thrice - once == pytest.approx(10, abs=1)


def test_there_is_no_arrow_where_nothing_is_known():
    flow = np.full((16, 64, 2), 3.0)
    flow[8, 8], flow[8, 24, 1], flow[8, 40] = np.nan, np.inf, 1.7e9
    valid = np.ones((16, 64), bool)
    valid[8, 56] = False
    assert not drawn(flow, 16, valid=valid).any()


def test_bands_do_not_show():
    """Frames are drawn in bands of rows; an arrow across two of them is the same as one within."""
    tall, short = np.zeros((512, 40, 2)), np.zeros((400, 40, 2))
    tall[251, 20] = short[139, 20] = (0, 30)
    valid_tall, valid_short = np.zeros(tall.shape[:2], bool), np.zeros(short.shape[:2], bool)
    valid_tall[251, 20] = valid_short[139, 20] = True
    grey = np.full((512, 40, 3), 128, np.uint8)
    one = draw_arrows(grey, tall, 1, valid_tall)
    other = draw_arrows(grey[:400], short, 1, valid_short)
    assert np.array_equal(one[240:300], other[128:188])
    assert (one[240:300] != 128).any()


def test_the_frame_stays_as_it_was():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    before = image.copy()
    flow = np.full((20, 30, 2), 1e8)
    assert draw_arrows(image, flow).shape == image.shape
    assert np.array_equal(image, before)
    grey = draw_arrows(image[..., 0], np.full((20, 30, 2), np.nan))
    assert np.array_equal(grey, np.repeat(image[..., :1], 3, axis=2))


def test_refusals():
    image, flow = np.zeros((4, 6, 3), np.uint8), np.zeros((4, 6, 2))
    with pytest.raises(ShapeError, match=r"flow has shape \(6, 4, 2\), wanted \(4, 6, 2\)"):
        draw_arrows(image, flow.transpose(1, 0, 2))
    with pytest.raises(ShapeError, match="wanted \\(H, W, 3\\) uint8"):
        draw_arrows(image.astype(float), flow)
    with pytest.raises(ShapeError, match=r"valid has shape \(6, 4\)"):
        draw_arrows(image, flow, valid=np.ones((6, 4), bool))
    with pytest.raises(ArgumentError, match="spacing is 0"):
        draw_arrows(image, flow, 0)
    with pytest.raises(ArgumentError, match="stretch is nan"):
        draw_arrows(image, flow, stretch=float("nan"))


@pytest.mark.parametrize(
    ("length", "times"), [(0.01, 1), (0.5, 20), (1, 10), (3, 5), (7, 2), (12, 1), (100, 1)]
)
def test_short_arrows_are_made_longer_up_to_the_spacing(length, times):
    flow = np.full((40, 40, 2), [0, -length], np.float32)
    flow[0, 0] = np.nan
    assert arrow_stretch(flow, 16) == times
    assert arrow_stretch(flow, 16, np.zeros((40, 40), bool)) == 1


class Pen:
    """Writes down what is drawn, in pixels of the frame, and draws nothing."""

    strokes: ClassVar[list] = []

    def __init__(self, page):
        pass

    def line(self, points, fill, width):
        self.strokes.append(("line", np.array(points) / 3, fill, width))

    def polygon(self, points, fill):
        self.strokes.append(("head", np.array(points) / 3, fill))

    def ellipse(self, box, fill):
        self.strokes.append(("dot", np.array(box) / 3, fill))


@pytest.fixture
def strokes(monkeypatch):
    monkeypatch.setattr(Pen, "strokes", [])
    monkeypatch.setattr(module.ImageDraw, "Draw", Pen)
    return Pen.strokes


@pytest.mark.parametrize(
    ("spacing", "step", "thick", "head"),
    [
        (24, 20.0, 2.0, 0.36 * 24),  # no longer than a share of the spacing
        (24, 10.0, 2.0, 0.45 * 10),  # than a share of the arrow
        (24, 1.0, 2.0, 1.6 * 2.0),  # nor shorter than it is thick
        (18, 9.0, 1.5, 0.45 * 9),
        (10, 8.0, 1.0, 3.6),
        (48, 20.0, 2.0, 9.0),
    ],
)
def test_every_stroke_of_an_arrow(strokes, spacing, step, thick, head):
    """An edge half a pixel wider all round, and the arrow on it; shafts are in thirds of a pixel."""
    flow = np.broadcast_to(np.array([step, 0.0]), (9, 9, 2))
    draw_arrows(np.zeros((9, 9, 3), np.uint8), flow, spacing)
    (edge, edge_head, shaft, shaft_head) = strokes
    start, end = np.array([4.5, 4.5]), np.array([4.5 + step, 4.5])
    assert (edge[0], edge[2], edge[3]) == ("line", (20, 24, 28), round(3 * thick + 3))
    assert (shaft[0], shaft[2], shaft[3]) == ("line", (255, 214, 10), round(3 * thick))
    assert (edge_head[0], edge_head[2]) == ("head", (20, 24, 28))
    assert (shaft_head[0], shaft_head[2]) == ("head", (255, 214, 10))
    assert shaft[1] == pytest.approx(np.array([start, end - [0.8 * head, 0]]))
    back = end - [head, 0]
    side = np.array([0, 0.42 * head])
    assert shaft_head[1] == pytest.approx(np.array([end, back + side, back - side]))
    # The edge's head: from its own, which is wider where the arrow is short and thick.
    head = min(0.36 * spacing, max(0.45 * step, 1.6 * (thick + 1)))
    assert edge[1] == pytest.approx(np.array([start, end - [0.8 * head, 0]]))
    back = end - [head + 0.4, 0]
    side = np.array([0, 0.42 * head + 0.55])
    assert edge_head[1] == pytest.approx(
        np.array([end + np.array([0.8, 0]), back + side, back - side])
    )


@pytest.mark.parametrize("step", [0.0, 0.49, 0.5])
def test_less_than_half_a_pixel_is_a_dot(strokes, step):
    flow = np.broadcast_to(np.array([0.0, step]), (9, 9, 2))
    draw_arrows(np.zeros((9, 9, 3), np.uint8), flow, 24)
    if step == 0.5:
        assert [stroke[0] for stroke in strokes] == ["line", "head"] * 2
        return
    (edge, dot) = strokes
    assert edge[1] == pytest.approx(np.array([4.5 - 1.7, 4.5 - 1.7, 4.5 + 1.7, 4.5 + 1.7]))
    assert dot[1] == pytest.approx(np.array([3.5, 3.5, 5.5, 5.5]))


def test_where_arrows_begin_and_that_the_usual_spacing_is_16(strokes):
    draw_arrows(np.zeros((20, 40, 3), np.uint8), np.zeros((20, 40, 2)))
    dots = [(stroke[1][:2] + stroke[1][2:]) / 2 for stroke in strokes]
    wanted = [[8.5, 8.5], [24.5, 8.5]]
    assert np.array(dots) == pytest.approx(np.array(wanted * 2))


def test_arrows_end_at_twice_height_and_width_at_the_most(strokes):
    flow = np.broadcast_to(np.array([3e6, -4e6]), (10, 20, 2))
    draw_arrows(np.zeros((10, 20, 3), np.uint8), flow, 30)
    tip = strokes[3][1][0]
    assert tip == pytest.approx([10.5 + 0.6 * 60, 5.5 - 0.8 * 60])
    strokes.clear()
    draw_arrows(np.zeros((10, 20, 3), np.uint8), flow * 1e-5, 30)  # (30, −40), 50 px long
    assert strokes[3][1][0] == pytest.approx([10.5 + 30, 5.5 - 40])


def test_a_band_draws_the_arrows_that_reach_into_it(strokes):
    """Bands of 256 rows; an arrow belongs to those that it comes near, by the spacing and 4 px."""
    image = np.zeros((600, 1, 3), np.uint8)
    for row, bands in ((250, 1), (251, 2), (260, 2), (261, 1), (506, 1), (507, 2), (599, 1)):
        strokes.clear()
        valid = np.zeros((600, 1), bool)
        valid[row] = True
        draw_arrows(image, np.zeros((600, 1, 2)), 1, valid)
        assert len(strokes) == 2 * bands  # a dot and its edge


@pytest.mark.parametrize(("length", "times"), [(0.1, 20), (0.09, 1), (0.8, 20), (0.81, 10), (8, 2)])
def test_the_stretch_of_a_length(length, times):
    assert stretch_for(length, 16) == times


def test_nine_arrows_of_ten_are_shorter_than_the_spacing():
    flow = np.zeros((1, 101, 2))
    flow[0, :, 0] = np.arange(101) / 90 * 8
    assert arrow_stretch(flow) == 2
    flow[0, 90] = 8.001
    assert arrow_stretch(flow) == 1
    assert arrow_stretch(np.full((2, 2, 2), np.nan)) == 1

"""A chart has its curve where its numbers are."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import ArgumentError
from lcv.visual import chart as module
from lcv.visual.chart import FINE, _log_range, _range, _x_ticks, curves
from lcv.visual.text import font

WORDS = {"title": "t", "x": "index", "y": "value"}
BLUE = np.array([0x2F, 0x6F, 0x9F])


def curve_rows(page):
    """The mean row of the first colour in each column that has it."""
    blue = (np.abs(page.astype(int) - BLUE).max(2) < 12).nonzero()
    columns = np.unique(blue[1])
    return columns, np.array([blue[0][blue[1] == column].mean() for column in columns])


def test_a_straight_line_is_straight_and_rises():
    columns, rows = curve_rows(curves({"a": np.arange(11.0)}, **WORDS, size=(300, 400)))
    fit = np.polyfit(columns, rows, 1)
    assert fit[0] < 0
    # Beside the dots, which are five pixels wide, nothing leaves the line.
    assert np.abs(np.polyval(fit, columns) - rows).max() < 1.5


def test_equal_ratios_are_straight_on_a_logarithmic_axis():
    series = {"a": 2.0 ** np.arange(-4, 5)}
    columns, rows = curve_rows(curves(series, **WORDS, log=True, size=(300, 400)))
    fit = np.polyfit(columns, rows, 1)
    assert np.abs(np.polyval(fit, columns) - rows).max() < 1.5


@pytest.mark.parametrize("values", [[1.0], [0.0, 0.0], [3.0] * 200, [-1e-14, 1e-14], [1e6, 2e6]])
def test_lines_and_points_can_be_drawn(values):
    page = curves({"a": np.array(values)}, **WORDS)
    assert page.shape == (400, 640, 3)
    columns, _ = curve_rows(page)
    assert len(columns) > 1


def test_many_curves_are_named():
    one = {f"level {k}": np.arange(5.0) + k for k in range(7)}
    assert not np.array_equal(curves(one, **WORDS), curves({"level 0": one["level 0"]}, **WORDS))


@settings(max_examples=150, deadline=None)
@given(low=st.floats(-1e5, 1e5), span=st.floats(0, 1e5))
def test_the_axis_holds_the_values_and_has_few_ticks(low, span):
    begin, end, ticks = _range(low, low + span)
    slack = 1e-9 * max(abs(low), abs(low + span), 1)
    assert begin <= low + slack
    assert end >= low + span - slack
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))


@settings(max_examples=150, deadline=None)
@given(low=st.floats(1e-8, 1e8), ratio=st.floats(1, 1e10))
def test_the_logarithmic_axis_too(low, ratio):
    begin, end, ticks = _log_range(low, low * ratio)
    assert begin <= low * (1 + 1e-6)
    assert end >= low * ratio * (1 - 1e-6)
    assert 1 <= len(ticks) <= 13


def test_ticks_count_from_one():
    assert _x_ticks(1) == [1]
    assert _x_ticks(128) == [1, 50, 100]
    assert _x_ticks(3) == [1, 2, 3]


def test_refusals():
    with pytest.raises(
        ArgumentError, match="'a' holds what cannot be drawn, wanted finite numbers"
    ):
        curves({"a": np.array([1, np.nan])}, **WORDS)
    with pytest.raises(ArgumentError, match="wanted finite positive numbers"):
        curves({"a": np.array([1.0, 0.0])}, **WORDS, log=True)
    with pytest.raises(ArgumentError, match="cannot be drawn"):
        curves({"a": np.array([])}, **WORDS)


class Pen:
    """Writes down what is drawn, in pixels of the chart, and draws nothing."""

    strokes: ClassVar[list] = []

    def __init__(self, page):
        pass

    def line(self, points, colour, width, joint=None):
        points = np.array(points).reshape(-1, 2)
        self.strokes.append(("line", self.small(points), colour, width / FINE))

    def rectangle(self, box, outline, width):
        self.strokes.append(("box", self.small(box), outline, width / FINE))

    def ellipse(self, box, colour):
        self.strokes.append(("dot", self.small(box), colour))

    def text(self, place, words, ink, face, anchor):
        self.strokes.append((words, self.small(place), face.size / FINE, anchor))

    @staticmethod
    def small(numbers):
        return (np.array(numbers) / FINE).round(1).tolist()


@pytest.fixture
def strokes(monkeypatch):
    monkeypatch.setattr(Pen, "strokes", [])
    monkeypatch.setattr(module.ImageDraw, "Draw", Pen)
    return Pen.strokes


def test_every_stroke_of_a_chart(strokes, monkeypatch):
    """Axes from 0 to 4 over indices from 1 to 3, in a box from (62, 34) to (282, 154)."""
    pasted = []
    monkeypatch.setattr(
        module.Image.Image, "paste", lambda page, part, at: pasted.append((part.size, at))
    )
    series = {"a": np.array([0.0, 1.0, 4.0]), "b": np.array([2.0, 2.0])}
    words = {"title": "t", "x": "index", "y": "value"}
    curves(series, **words, reference=3.0, size=(200, 300))
    grid, soft = (226, 232, 237), (159, 176, 189)
    blue, red = "#2f6f9f", "#c8503c"
    rows = {0: 154.0, 1: 124.0, 2: 94.0, 3: 64.0, 4: 34.0}
    wanted = []
    for tick, y in rows.items():
        wanted.append(("line", [[62.0, y], [282.0, y]], grid, 1))
        wanted.append((str(tick), [55.0, y], 12, "rm"))
    for tick, x in ((1, 62.0), (2, 172.0), (3, 282.0)):
        wanted.append(("line", [[x, 154.0], [x, 158.0]], soft, 1))
        wanted.append((str(tick), [x, 168.0], 12, "mm"))
    wanted += [
        ("line", [[62.0, 64.0], [282.0, 64.0]], soft, 2),
        ("box", [62.0, 34.0, 282.0, 154.0], soft, 1),
        ("line", [[62.0, 154.0], [172.0, 124.0], [282.0, 34.0]], blue, 2),
        ("dot", [59.5, 151.5, 64.5, 156.5], blue),
        ("dot", [169.5, 121.5, 174.5, 126.5], blue),
        ("dot", [279.5, 31.5, 284.5, 36.5], blue),
        ("line", [[62.0, 94.0], [172.0, 94.0]], red, 2),
        ("dot", [59.5, 91.5, 64.5, 96.5], red),
        ("dot", [169.5, 91.5, 174.5, 96.5], red),
        ("line", [[76.0, 50.0], [94.0, 50.0]], blue, 2),
        ("a", [100.0, 50.0], 12, "lm"),
        ("line", [[76.0, 67.0], [94.0, 67.0]], red, 2),
        ("b", [100.0, 67.0], 12, "lm"),
        ("t", [150.0, 17.0], 15, "mm"),
        ("index", [172.0, 186.0], 13, "mm"),
    ]
    *drawn, upright = strokes
    assert drawn == wanted
    # The name of the other axis on a strip of its own, two fine pixels longer than its letters,
    # which is turned and put in the middle of the axis.
    length = math.ceil(font(FINE * 13).getlength("value")) + 2
    assert upright == ("value", [round(length / 2 / FINE, 1), 10.0], 13, "mm")
    assert pasted == [((FINE * 20, length), (FINE * 3, FINE * 94 - length // 2))]


def test_long_curves_have_no_dots_and_one_point_has_no_line(strokes):
    for count, dots in ((40, 40), (41, 0), (1, 1)):
        strokes.clear()
        curves({"a": np.arange(float(count))}, **WORDS)
        assert [stroke[0] for stroke in strokes].count("dot") == dots
        curve = [each for each in strokes if each[0] == "line" and each[2] == "#2f6f9f"]
        assert [len(each[1]) for each in curve] == ([count] if count > 1 else [])


def test_the_y_axis_is_named_beside_it():
    page = curves({"a": np.arange(5.0)}, title="", x="", y="value", size=(200, 300))
    words = (page[40:150, 5:22] < 128).any(2)
    rows, columns = np.nonzero(words)
    assert np.ptp(rows) > 2 * np.ptp(columns)  # upright
    assert abs((rows.min() + rows.max()) / 2 + 40 - 94) < 2


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 4, [0, 1, 2, 3, 4]),
        (0, 6, [0, 1, 2, 3, 4, 5, 6]),
        (0, 7, [0, 2, 4, 6, 8]),
        (0.1, 0.9, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-30, 95, [-50, 0, 50, 100]),
        (1234, 1236.1, [1234, 1234.5, 1235, 1235.5, 1236, 1236.5]),
        (5, 5, [4.4, 4.6, 4.8, 5, 5.2, 5.4, 5.6]),
        (0, 0, [-0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6]),
    ],
)
def test_ticks_by_hand(low, high, wanted):
    begin, end, ticks = _range(low, high)
    assert ticks == wanted
    assert (begin, end) == pytest.approx((wanted[0], wanted[-1]))


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (1, 10, [1, 2, 5, 10]),
        (0.3, 30, [0.2, 0.5, 1, 2, 5, 10, 20, 50]),
        (1, 1, [1, 2]),
        (10, 10, [10, 20]),
        (2, 3999, [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
        (2, 4001, [1, 10, 100, 1000, 10000]),
        (1, 1e13, [10.0**k for k in range(0, 14, 2)]),
    ],
)
def test_logarithmic_ticks_by_hand(low, high, wanted):
    begin, end, ticks = _log_range(low, high)
    assert ticks == pytest.approx(wanted)
    assert begin == pytest.approx(wanted[0])
    assert end >= high

"""A chart has its curve where its numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import ArgumentError
from lcv.visual.chart import _log_range, _range, _x_ticks, curves

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

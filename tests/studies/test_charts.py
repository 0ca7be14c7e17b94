"""Pictures as SVG: well-formed, right way up, and safe whatever the labels hold."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcv.studies.charts import (
    Bar,
    Line,
    interval_chart,
    label_of,
    line_chart,
    stacked,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(numbers, numbers)
def test_ticks_are_round_and_span_what_they_are_for(a, b):
    low, high = sorted((a, b))
    found = ticks(low, high)
    step = found[1] - found[0]
    slack = 1e-6 * max(abs(step), 1e-9 * max(abs(low), abs(high)))
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
    assert 2 <= len(found) <= 9
    if high > low and step > 1e-12:
        leading = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(leading - each) for each in (1, 2, 5, 10)) < 1e-3


def test_labels_have_the_decimals_that_the_step_needs():
    assert [label_of(v, 0.02) for v in (-0.04, 0.0, 0.1)] == ["−0.04", "0.00", "0.10"]
    assert label_of(1500.0, 500.0) == "1500"
    assert label_of(-0.0, 0.1) == "0.0"


def lines_of(chart):
    tree = ElementTree.fromstring(chart.svg())
    return [
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in tree.iter(f"{SVG}polyline")
    ]


def test_more_is_up_and_later_is_right():
    lines = [Line("a", [0, 50, 100], [1.0, 3.0, 2.0]), Line("b", [0, 100], [2.0, 2.0])]
    first, second = lines_of(line_chart(lines, "t", "x", "y"))
    assert [x for x, _ in first] == sorted(x for x, _ in first)
    assert first[1][1] < first[2][1] < first[0][1]  # y grows downwards in SVG
    assert second[0][1] == second[1][1] == first[2][1]


def test_a_logarithmic_axis_spaces_decades_evenly_and_holes_are_left_out():
    (line,) = lines_of(
        line_chart([Line("a", [0.001, 0.01, 0.1], [1, 2, 3])], "t", "x", "y", log_x=True)
    )
    assert line[1][0] - line[0][0] == pytest.approx(line[2][0] - line[1][0], abs=0.2)
    (line,) = lines_of(line_chart([Line("a", [0, 0.1, 1], [1, 2, 3])], "t", "x", "y", log_x=True))
    assert line[1][0] - line[0][0] == pytest.approx((line[2][0] - line[1][0]) / 2, abs=0.2)
    (line,) = lines_of(line_chart([Line("a", [1, 2, 3], [1, math.nan, 3])], "t", "x", "y"))
    assert len(line) == 2


def test_labels_cannot_break_out():
    nasty = '</text><script src="http://x/">&'
    charts = [
        line_chart([Line(nasty, [1], [1])], nasty, nasty, nasty),
        interval_chart([Bar(nasty, 0.1, (0.0, 0.2), (0.1,))], nasty, nasty),
    ]
    for text in (stacked(charts).svg(), *(chart.inline(nasty) for chart in charts)):
        tree = ElementTree.fromstring(text)
        assert not [node for node in tree.iter() if node.tag.endswith("script")]
    assert "http://www.w3.org" not in charts[0].inline("t")


def test_intervals_and_what_is_too_long_for_the_axis():
    bars = [
        Bar("near", 0.01, (-0.01, 0.03), (0.0, 0.02)),
        Bar("null", 0.0, (-0.005, 0.005), muted=True),
        Bar("nearer", -0.01, (-0.02, 0.0)),
        Bar("far", -4.0, (-5.0, -3.0)),
    ]
    chart = interval_chart(bars, "t", "px")
    tree = ElementTree.fromstring(chart.svg())
    words = ["".join(node.itertext()) for node in tree.iter(f"{SVG}text")]
    assert "← −4" in words
    assert "px; shaded: null control" in words
    assert len(list(tree.iter(f"{SVG}path"))) == 3
    # A bar far out alone is shown: there is nothing to hide it from.
    assert "← −4" not in interval_chart([bars[3]], "t", "px").svg()


def test_a_long_bar_that_its_axis_has_room_for_is_drawn():
    """Twelve times as long as the middle one, yet hardly longer than the next."""
    bars = [Bar("a", 0.0, (-0.1, 0.1)), Bar("b", 0.0, (-0.2, 0.2)), Bar("c", 0.0, (-0.22, 0.2))]
    bars += [Bar("long", 0.5, (-1.2, 2.1)), Bar("longer", 0.5, (-1.5, 2.6))]
    assert 2.6 > 10 * 0.22 > 2.1  # `_comparable` alone would leave out the last
    tree = ElementTree.fromstring(interval_chart(bars, "t", "px").svg())
    assert len(list(tree.iter(f"{SVG}path"))) == len(bars)
    words = ["".join(node.itertext()) for node in tree.iter(f"{SVG}text")]
    assert not [text for text in words if "→" in text]

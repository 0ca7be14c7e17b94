"""Plots: what lies where, off-axis bars as numbers, and any text as a label."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from lcv.visual.plots import Bar, Bars, Curves, Line, draw, svg


def places(axis, points):
    return np.asarray(axis.transData.transform(points))


def test_more_is_up_later_is_right_and_a_name_keeps_its_colour():
    lines = [Line("a", [0, 50, 100], [1.0, 3.0, 2.0]), Line("b", [0, 100], [2.0, 2.0])]
    figure = draw([Curves("t", "x", "y", lines), Curves("u", "x", "y", lines[::-1])], columns=2)
    first, second = figure.axes
    points = places(first, first.lines[0].get_xydata())
    assert (np.diff(points[:, 0]) > 0).all()
    assert points[1, 1] > points[2, 1] > points[0, 1]
    colours = [{line.get_label(): line.get_color() for line in axis.lines} for axis in figure.axes]
    assert colours[0] == colours[1]
    assert len(set(colours[0].values())) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert second.get_title(loc="left") == "u"


@pytest.mark.parametrize(
    ("x", "share"), [((0.001, 0.01, 0.1), (0.9, 1.1)), ((0, 0.1, 1), (0.2, 1))]
)
def test_a_logarithmic_axis_spaces_decades_evenly_and_has_a_place_for_0(x, share):
    (axis,) = draw([Curves("t", "x", "y", [Line("a", x, [1, 2, 3])], log_x=True)]).axes
    a, b, c = places(axis, [(each, 1) for each in x])[:, 0]
    assert share[0] < (b - a) / (c - b) < share[1]
    assert [label.get_text() for label in axis.get_xticklabels()] == [f"{each:g}" for each in x]


def test_an_interval_is_a_band():
    (axis,) = draw([Curves("t", "x", "y", [Line("a", [1, 2], [1, 2], [0, 1], [2, 3])])]).axes
    (band,) = axis.collections
    assert band.get_datalim(axis.transData).bounds == pytest.approx((1, 0, 1, 3))


def test_labels_may_hold_anything():
    nasty = '</text><script src="http://x/">& $ \\frac{ $ _'
    text = svg(
        [
            Curves(nasty, nasty, nasty, [Line(nasty, [1], [1])]),
            Bars(nasty, nasty, [Bar(nasty, 0.1, (0.0, 0.2), (0.1,))]),
        ]
    )
    tree = ElementTree.fromstring(text)
    assert not [node for node in tree.iter() if node.tag.endswith("script")]
    assert "".join(tree.itertext()).count(nasty) == 7  # titles, axes, the legend, a bar


def texts(axis):
    return [text.get_text() for text in axis.texts]


def diamonds(axis):
    return [line for line in axis.lines if line.get_marker() == "D"]


def test_intervals_and_what_is_too_long_for_the_axis():
    bars = [
        Bar("near", 0.01, (-0.01, 0.03), (0.0, 0.02)),
        Bar("null", 0.0, (-0.005, 0.005), muted=True),
        Bar("nearer", -0.01, (-0.02, 0.0)),
        Bar("far", -4.0, (-5.0, -3.0)),
    ]
    (axis,) = draw([Bars("t", "px", bars)]).axes
    assert texts(axis) == ["← −4"]
    assert axis.get_xlabel() == "px; shaded: null control"
    assert len(diamonds(axis)) == 3
    assert axis.get_xlim()[0] > -0.1
    (label, *_) = axis.get_yticklabels()
    assert label.get_text() == "near"  # the first is at the top
    heights = places(axis, [(0, 0), (0, 3)])[:, 1]
    assert heights[0] > heights[1]
    # A long bar alone is shown: there is nothing that it would squeeze.
    assert texts(draw([Bars("t", "px", [bars[3]])]).axes[0]) == []


def test_a_long_bar_that_its_axis_has_room_for_is_drawn():
    """Twelve times as long as the middle one, yet hardly longer than the next."""
    bars = [Bar("a", 0.0, (-0.1, 0.1)), Bar("b", 0.0, (-0.2, 0.2)), Bar("c", 0.0, (-0.22, 0.2))]
    bars += [Bar("long", 0.5, (-1.2, 2.1)), Bar("longer", 0.5, (-1.5, 2.6))]
    assert 2.6 > 10 * 0.22 > 2.1
    (axis,) = draw([Bars("t", "px", bars)]).axes
    assert len(diamonds(axis)) == len(bars)
    assert texts(axis) == []


def test_the_same_figure_gives_the_same_file_and_none_without_matplotlib(monkeypatch):
    panels = [Curves("t", "x", "y", [Line("a", [1, 2], [1, 2])])]
    assert svg(panels) == svg(panels)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert svg(panels) is None

"""Plots: what lies where, off-axis bars as numbers, and any text as a label."""

from __future__ import annotations

import sys
import textwrap
from xml.etree import ElementTree

import numpy as np
import pytest

from lcv.visual.plots import Bar, Bars, Curves, Line, _fitting, _tick_labels, draw, svg


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


def test_the_look_of_lines():
    """Colour and marker by the group, sizes, the band, the grid, and the names of the axes."""
    lines = [
        Line("a", [1, 2], [1, 2], [0, 1], [2, 3]),
        Line("b", [1, 2], [3, 4], group="g", dash="--", width=2.0),
        Line("c", [1, 2], [5, 6], group="g", marker="x"),
        Line("d", list(range(40)), list(range(40))),
        Line("e", list(range(41)), list(range(41))),
    ]
    figure = draw([Curves("t", "across", "up", lines, from_zero=True)], title="all", width=5.0)
    assert figure.get_size_inches().tolist() == pytest.approx([5.0, 2.9 + 0.6])
    (axis,) = figure.axes
    look = [
        (each.get_color(), each.get_marker(), each.get_linestyle(), each.get_linewidth())
        for each in axis.lines
    ]
    assert look == [
        ("#0b62a4", "o", "-", 1.4),
        ("#c2410c", "s", "--", 2.0),
        ("#c2410c", "x", "-", 1.4),
        ("#2e7d32", "D", "-", 1.4),
        ("#7b3fa0", "", "-", 1.4),
    ]
    assert {each.get_markersize() for each in axis.lines} == {3.5}
    (band,) = axis.collections
    assert (band.get_alpha(), band.get_linewidth().tolist()) == (0.13, [0])
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("across", "up")
    assert axis.get_ylim()[0] == 0
    assert [line.get_visible() for line in axis.get_ygridlines()[:1]] == [True]
    assert not axis.get_xgridlines()[0].get_visible()
    assert axis.get_ygridlines()[0].get_linewidth() == 0.7
    assert axis.get_title(loc="left") == "t"
    assert axis.title.get_fontsize() == 9
    assert axis.xaxis.label.get_fontsize() == 8
    assert [axis.get_xticklabels()[0].get_fontsize(), axis.get_yticklabels()[0].get_fontsize()] == [
        7,
        7,
    ]
    assert [axis.spines[side].get_visible() for side in ("top", "right", "left")] == [0, 0, 1]
    assert (figure.get_suptitle(), figure._suptitle.get_fontsize()) == ("all", 12)
    (legend,) = figure.legends
    assert not legend.get_frame_on()
    assert legend.get_texts()[0].get_fontsize() == 9
    lines = [Line("a", [-1, 2], [-3, 4])]
    assert draw([Curves("t", "x", "y", lines)]).axes[0].get_ylim()[0] < -3


def test_rows_and_columns_of_panels():
    line = Line("a", [1, 2], [1, 2])
    curves = [Curves("t", "x", "y", [line]), Curves("u", "x", "y", [line], height=4.0)]
    panels = [*curves, Bars("v", "x", [Bar("a", 1.0), Bar("b", 2.0)])]
    figure = draw(panels, columns=2)
    assert figure.get_size_inches().tolist() == pytest.approx([7.6, 4.0 + 0.9 + 2 * 0.28 + 0.6])
    assert [axis.get_visible() for axis in figure.axes] == [True, True, True, False]
    assert figure.axes[0].get_gridspec().get_height_ratios() == pytest.approx([4.0, 1.46])
    # 11.6 letters an inch: a title has those of its column, the legend 8 of 10 of all.
    words = "word " * 40
    figure = draw([Curves(words, "x", "y", [Line(words, [1], [1])])] * 2, columns=2, width=5.0)
    assert figure.axes[0].get_title(loc="left") == textwrap.fill(words, 29)
    assert figure.legends[0].get_texts()[0].get_text() == textwrap.fill(words, 46)


@pytest.mark.parametrize(("letters", "columns"), [(1, 8), (8, 4), (23, 2), (60, 1)])
def test_as_many_columns_of_the_legend_as_fit(letters, columns):
    """58 letters in a row of 5 inches; an entry takes 6 more than its name has."""
    lines = [Line("a" * (letters - 1) + str(k), [1], [1]) for k in range(9)]
    figure = draw([Curves("t", "x", "y", lines)], width=5.0)
    assert figure.legends[0]._ncols == columns


def test_few_levels_are_the_ticks_and_many_are_not():
    for count, exact in ((9, True), (10, False)):
        x = [3.7 * k for k in range(count)]
        (axis,) = draw([Curves("t", "x", "y", [Line("a", x, x)])]).axes
        assert (axis.get_xticks().tolist() == x) == exact


def test_labels_that_would_overlap_are_left_out():
    """A letter is 0.022 of a panel wide, and one letter lies between two labels."""
    levels = [0.0, 0.4, 0.42, 1.0]
    lines = [Line("a", levels, [1, 1, 1, 1])]
    (axis,) = draw([Curves("t", "x", "y", lines)]).axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "0.4", "", "1"]

    class Straight:
        """An axis from 0 to 1."""

        transAxes = transData = property(lambda self: self)

        def inverted(self):
            return self

        def transform(self, points):
            return np.asarray(points)

    assert _tick_labels(Straight(), [0.1, 0.187]) == ["0.1", ""]
    assert _tick_labels(Straight(), [0.1, 0.2]) == ["0.1", "0.2"]
    # The one that was left out keeps no room: 0.1 ends at 0.144, 0.2 begins at 0.156.
    assert _tick_labels(Straight(), [0.1, 0.15, 0.2]) == ["0.1", "", "0.2"]


def test_the_look_of_bars():
    bars = [
        Bar("near", 0.01, (-0.01, 0.03), (0.0, 0.02)),
        Bar("null", 0.0, (-0.005, 0.005), muted=True),
        Bar("nearer", -0.01, (-0.02, 0.0)),
        Bar("far", 4.0, (3.0, 5.0)),
        Bar("bare", 0.015),
    ]
    (axis,) = draw([Bars("t", "px", bars)]).axes
    assert axis.get_ylim() == (4.5, -0.5)
    assert axis.get_yticks().tolist() == [0, 1, 2, 3, 4]
    blue, grey = "#0b62a4", "#475569"
    zero, *marks = axis.lines
    assert (zero.get_xdata(), zero.get_linewidth(), zero.get_color()) == ([0, 0], 1.2, "#22303c")
    shown = [(m.get_marker(), list(m.get_xdata()), list(m.get_ydata())) for m in marks]
    assert shown == [
        ("o", [0.0, 0.02], [0, 0]),
        ("D", [0.01], [0]),
        ("o", [], []),
        ("D", [0.0], [1]),
        ("o", [], []),
        ("D", [-0.01], [2]),
        ("o", [], []),
        ("D", [0.015], [4]),
    ]
    assert [mark.get_color() for mark in marks] == [blue, blue, grey, grey, blue, blue, blue, blue]
    assert {(mark.get_marker(), mark.get_markersize()) for mark in marks} == {("o", 4), ("D", 5)}
    intervals = axis.collections
    found = [each.get_segments()[0].tolist() for each in intervals]
    assert found == [
        [[-0.01, 0], [0.03, 0]],
        [[-0.005, 1], [0.005, 1]],
        [[-0.02, 2], [0.0, 2]],
    ]
    assert {(each.get_linewidth()[0], each.get_alpha()) for each in intervals} == {(3, 0.55)}
    (shade,) = axis.patches
    assert (shade.get_alpha(), shade.get_linewidth()) == (0.13, 0)
    assert shade.get_extents().transformed(axis.transData.inverted()).intervalx == pytest.approx(
        [-0.005, 0.005]
    )
    assert axis.get_xgridlines()[0].get_visible()
    assert not axis.get_ygridlines()[0].get_visible()
    (far,) = axis.texts
    assert (far.get_text(), far.get_position(), far.get_ha()) == ("+4 →", (1, 3), "right")
    assert (far.get_va(), far.get_fontsize()) == ("center", 8)
    axis = draw([Bars("t", "px", [*bars[:3], Bar("far", -4.0)])]).axes[0]
    (far,) = axis.texts
    assert (far.get_position(), far.get_ha()) == ((0, 3), "left")


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ((0.1, 0.1, 1.0), 3),  # ten times the middle one
        ((0.1, 0.1, 1.01), 2),
        ((0.1, 0.2, 0.2, 2.0, 3.0), 5),  # 1.5 times the next
        ((0.1, 0.2, 0.2, 2.0, 3.01), 4),
        ((0.0, 0.0, 5.0), 3),  # beside zeros nothing is long
        ((-7.0,), 1),
    ],
)
def test_which_bars_fit(values, count):
    bars = [Bar(str(k), value) for k, value in enumerate(values)]
    assert _fitting(bars) == bars[:count]

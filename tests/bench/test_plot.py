"""Pictures show every row, and name what is missing."""

from __future__ import annotations

import pytest

from lcv.bench.plot import OURS, THEIRS, axis_rows, bench_figure
from lcv.bench.table import machine_words


@pytest.mark.parametrize(
    ("axis", "expected"), [("size", [20, 30]), ("batch", [20, 80]), ("iters", [10, 20])]
)
def test_a_line_varies_one_axis(growth_results, axis, expected):
    rows = axis_rows(growth_results, axis, "net", "ours")
    assert [round(1000 * row["median_seconds"]) for row in rows] == expected


def test_pictures_show_every_row_and_name_what_is_missing(table_results, growth_results):
    bars = bench_figure(table_results)
    (axis,) = bars.axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [
        r["label"] for r in table_results["rows"]
    ]
    assert any("out of memory" in text.get_text() for text in axis.texts)
    chart = bench_figure(growth_results)
    assert len(chart.axes) == 6
    assert all(axis.get_xscale() == axis.get_yscale() == "log" for axis in chart.axes)
    assert "missing: theirs at 128×72, 2 iterations: out of memory" in chart.get_suptitle()
    drawn = {line.get_label(): len(line.get_xdata()) for line in chart.axes[0].lines}
    assert drawn == {"ours": 2, "theirs": 1}


def test_a_panel_of_a_point_is_drawn_so(table_results):
    """Medians as dots on their ranges, ours round and blue, the peers' square and red."""
    figure = bench_figure(table_results)
    (axis,) = figure.axes
    assert figure.get_size_inches() == pytest.approx((9, 0.9 + 0.27 * 5 + 0.5))
    lines = [
        (line.get_xdata(), list(line.get_ydata()), line.get_color(), line.get_marker())
        for line in axis.lines
    ]
    expected = []
    for place, ms in enumerate((20, 18, 90, 60)):
        colour, marker = (OURS, "o") if place < 2 else (THEIRS, "s")
        expected.append((pytest.approx([ms / 1.1, ms / 0.9]), [place, place], colour, "None"))
        expected.append((pytest.approx([ms]), [place], colour, marker))
    assert lines == expected
    assert {line.get_linewidth() for line in axis.lines[::2]} == {2}
    assert {line.get_markersize() for line in axis.lines[1::2]} == {6}
    texts = [(text.get_text(), *text.get_position()) for text in axis.texts]
    assert texts == [
        ("  20.00 ms, 5 MiB, 0.01 px", pytest.approx(20 / 0.9), 0),
        ("  18.00 ms, 5 MiB", pytest.approx(20.0), 1),
        ("  90.00 ms, 5 MiB", pytest.approx(100.0), 2),
        ("  60.00 ms, 5 MiB", pytest.approx(60 / 0.9), 3),
        (" out of memory", 0.01, 4),
    ]
    assert [text.get_fontsize() for text in axis.texts[:4]] == [8] * 4
    assert axis.get_xlim() == pytest.approx((9, 360))
    assert axis.get_ylim() == (4.5, -0.5)  # the first row on top
    assert axis.get_xscale() == "log"
    assert axis.get_title(loc="left") == "net, 64×72, 2 iterations"
    assert axis.get_xlabel() == "milliseconds: the median, and the quickest to the slowest"
    assert not axis.spines["top"].get_visible()
    assert axis.spines["left"].get_visible()
    assert axis.xaxis.get_major_formatter()(20.0, 0) == "20"
    assert {tick.get_fontsize() for tick in axis.get_yticklabels()} == {8}
    assert axis.title.get_fontsize() is not None
    (words,) = figure.texts
    assert words.get_text() == machine_words(table_results)
    assert words.get_position() == (0.01, -0.02)


def test_a_point_where_all_failed_and_one_without_known_memory(table_results):
    rows = table_results["rows"]
    rows[0]["peak_bytes"] = None
    assert bench_figure(table_results).axes[0].texts[0].get_text() == "  20.00 ms, 0.01 px"
    alone = {**table_results, "rows": [{**rows[4], "error": "z" * 80, "out_of_memory": False}]}
    (text,) = bench_figure(alone).axes[0].texts
    assert text.get_text() == " " + "z" * 50
    both = {**table_results, "rows": [*rows, *({**row, "height": 128} for row in rows)]}
    assert len(bench_figure(both).axes) == 2


def test_a_chart_of_growth_has_time_above_and_memory_below(growth_results):
    growth_results["rows"][2]["peak_bytes"] = None
    figure = bench_figure(growth_results)
    assert figure.get_size_inches() == pytest.approx((12, 7.6))
    drawn = [
        [
            (list(line.get_xdata()), [round(float(y)) for y in line.get_ydata()])
            for line in axis.lines
        ]
        for axis in figure.axes
    ]
    small, tall = 64 * 72, 128 * 72
    assert drawn == [
        [([small, tall], [20, 30]), ([small], [60])],
        [([1, 4], [20, 80]), ([1], [60])],
        [([1, 2], [10, 20]), ([2], [60])],
        [([small, tall], [5, 5]), ([small], [5])],
        [([1], [5]), ([1], [5])],
        [([1, 2], [5, 5]), ([2], [5])],
    ]
    styles = {(line.get_color(), line.get_marker()) for axis in figure.axes for line in axis.lines}
    assert styles == {("#2f6f9f", "o"), ("#c8503c", "s")}
    assert {line.get_markersize() for axis in figure.axes for line in axis.lines} == {4}
    assert [axis.get_xlabel() for axis in figure.axes[:3]] == [
        *("pixels", "pairs in a batch", "iterations"),
    ]
    assert [axis.get_ylabel() for axis in figure.axes[::3]] == ["milliseconds", "peak MiB"]
    ticks = [[tick.get_text() for tick in axis.get_xticklabels()] for axis in figure.axes[:3]]
    assert ticks == [["64×72", "128×72"], ["1", "4"], ["2", "1"]]
    assert all(not axis.spines["right"].get_visible() for axis in figure.axes)
    assert figure.axes[0].yaxis.get_major_formatter()(50.0, 0) == "50"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "theirs"]
    assert figure._suptitle.get_position()[0] == 0.01


def test_several_networks_are_named_and_colours_begin_again(growth_results):
    rows = growth_results["rows"]
    for number in range(4):
        rows.append({**rows[0], "label": f"ours {number}"})
    rows.append({**rows[0], "model": "other"})
    figure = bench_figure(growth_results)
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == [
        "net: ours",
        "net: theirs",
        *(f"net: ours {n}" for n in range(4)),
        "other: ours",
    ]
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert colours[0] == colours[5]  # the fifth of ours has the first colour again
    assert len(set(colours[2:5])) == 3


def test_eight_missing_points_are_named_and_the_others_counted(growth_results):
    missing = growth_results["rows"][-1]
    for count, more in ((8, ""), (10, "\nand 2 more")):
        rows = [
            growth_results["rows"][0],
            *[{**missing, "error": "q" * 90, "out_of_memory": False}] * count,
        ]
        said = bench_figure({**growth_results, "rows": rows}).get_suptitle()
        assert said.count(
            "missing: theirs at 128×72, 2 iterations: " + "q" * 60 + "\n"
        ) == 7 + bool(more)
        assert said.endswith(more or "q" * 60)

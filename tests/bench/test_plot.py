"""Pictures show every row, and name what is missing."""

from __future__ import annotations

import pytest

from lcv.bench.plot import axis_rows, bench_figure


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

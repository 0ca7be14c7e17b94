"""Tables and pictures say what was measured, what failed and why."""

from __future__ import annotations

import pytest

from lcv.bench import bench_tables
from lcv.bench.plot import axis_rows, bench_figure
from lcv.bench.table import baseline

ORIGIN = {"device": "NVIDIA X", "threads": 4, "torch": "2.11", "commit": "0123456789"}


def row(label, ms, *, peer=None, lcv="unfolded", precision="float32", **more):
    times = [ms / 1000, ms / 900, ms / 1100]
    numbers = {"seconds": times, "median_seconds": times[0], "first_seconds": 1.5}
    told = {"model": "net", "label": label, "peer": peer, "lcv": lcv, "volume": "all-pairs"}
    told |= {"engine": "plain", "precision": precision, "peak_bytes": 5 * 2**20}
    return {**told, "height": 64, "width": 72, "batch": 1, "iters": 2, **numbers, **more}


def broken(label, **more):
    kept = row(label, 1, **more)
    for name in ("seconds", "median_seconds", "first_seconds", "peak_bytes"):
        del kept[name]
    return {**kept, "error": "OutOfMemoryError: of 90 GiB", "out_of_memory": True}


def results(rows, base=None):
    told = {"packages": {"torchvision": "0.26"}, "missing": ["ptlflow"], "interrupted": False}
    return {"format": "lcv bench 2", "provenance": ORIGIN, "base": base, "rows": rows, **told}


TABLE = results(
    [
        row("ours", 20, px_mean=0.01, px_p99=0.05),
        row("ours, without", 18, lcv="none"),
        row("theirs, float32", 90, peer="torchvision"),
        row("theirs, tf32", 60, peer="torchvision", precision="tf32"),
        broken("theirs, bf16", peer="torchvision", precision="bf16"),
    ]
)


def test_a_table_of_a_point_and_what_lcv_costs():
    point, cost = bench_tables(TABLE)
    assert point.title == "net, 64×72, 2 iterations"
    by_label = {line[0]: line[1:] for line in point.rows}
    assert by_label["ours"] == ("20.00", "18.18 to 22.22", "5", "0.0100", "0.0500", "1.5", "3.00")
    assert by_label["theirs, tf32"][-1] == "1.00"
    assert by_label["theirs, bf16"][0] == "out of memory"
    assert "Times as fast: as theirs, tf32." in point.caption
    assert "NVIDIA X, torch 2.11, torchvision 0.26, commit 0123456." in point.caption
    assert "Not installed, so left out: ptlflow." in point.caption
    assert [line[1:] for line in cost.rows] == [
        ("with LCV", "20.00", "+2.00", "+11.1"),
        ("without LCV", "18.00", "–", "–"),
    ]
    assert "ours, without" in point.text()


def test_without_peers_nothing_is_compared():
    (table,) = bench_tables(results([row("ours", 20)]))
    assert "times as fast" not in table.columns
    assert baseline(TABLE["rows"][:2]) is None


BASE = {"height": 64, "width": 72, "batch": 1, "iters": 2}
GROWTH = results(
    [
        row("ours", 20),
        row("ours", 30, height=128),
        row("ours", 80, batch=4),
        row("ours", 10, iters=1),
        row("theirs", 60, peer="torchvision"),
        broken("theirs", peer="torchvision", height=128),
    ],
    BASE,
)


def test_a_table_of_growth():
    (table,) = bench_tables(GROWTH)
    assert table.columns == ("", "ours", "theirs")
    assert table.rows[0] == ("64×72, 2 iterations", "20.00 / 5", "60.00 / 5")
    assert table.rows[1] == ("128×72, 2 iterations", "30.00 / 5", "out of memory")
    assert table.rows[2] == ("64×72, batch 4, 2 iterations", "80.00 / 5", "–")
    assert table.rows[3][0] == "64×72, 1 iteration"


@pytest.mark.parametrize(
    ("axis", "expected"), [("size", [20, 30]), ("batch", [20, 80]), ("iters", [10, 20])]
)
def test_a_line_varies_one_axis(axis, expected):
    rows = axis_rows(GROWTH, axis, "net", "ours")
    assert [round(1000 * row["median_seconds"]) for row in rows] == expected


def test_pictures_show_every_row_and_name_what_is_missing():
    bars = bench_figure(TABLE)
    (axis,) = bars.axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [
        r["label"] for r in TABLE["rows"]
    ]
    assert any("out of memory" in text.get_text() for text in axis.texts)
    chart = bench_figure(GROWTH)
    assert len(chart.axes) == 6
    assert all(axis.get_xscale() == axis.get_yscale() == "log" for axis in chart.axes)
    assert "missing: theirs at 128×72, 2 iterations: out of memory" in chart.get_suptitle()
    drawn = {line.get_label(): len(line.get_xdata()) for line in chart.axes[0].lines}
    assert drawn == {"ours": 2, "theirs": 1}

"""Tables say what was measured, what failed and why."""

from __future__ import annotations

from lcv.bench import bench_tables
from lcv.bench.table import baseline, machine_words


def test_a_table_of_a_point_and_what_lcv_costs(table_results):
    point, cost = bench_tables(table_results)
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


def test_without_peers_nothing_is_compared(table_results):
    (table,) = bench_tables({**table_results, "rows": table_results["rows"][:1]})
    assert "times as fast" not in table.columns
    assert baseline(table_results["rows"][:2]) is None


def test_a_table_of_growth(growth_results):
    (table,) = bench_tables(growth_results)
    assert table.columns == ("", "ours", "theirs")
    assert table.rows[0] == ("64×72, 2 iterations", "20.00 / 5", "60.00 / 5")
    assert table.rows[1] == ("128×72, 2 iterations", "30.00 / 5", "out of memory")
    assert table.rows[2] == ("64×72, batch 4, 2 iterations", "80.00 / 5", "–")
    assert table.rows[3][0] == "64×72, 1 iteration"


def test_words_about_an_interrupted_or_empty_run(table_results):
    assert machine_words({**table_results, "interrupted": True}).endswith(
        "not all rows were measured."
    )
    assert machine_words({**table_results, "provenance": None}) == "Nothing could be measured."

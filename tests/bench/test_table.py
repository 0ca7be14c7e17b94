"""Tables say what was measured, what failed and why."""

from __future__ import annotations

from lcv.bench import bench_tables
from lcv.bench.table import baseline, failed, machine_words, ms_words, point_words


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


def test_a_point_without_iterations_and_a_batch_of_one():
    row = {"height": 64, "width": 72, "batch": 1, "iters": None}
    assert point_words(row) == "64×72"
    assert point_words({**row, "batch": 2, "iters": 2}) == "64×72, batch 2, 2 iterations"


def test_milliseconds_are_whole_from_100_on():
    assert [ms_words(value) for value in (99.5, 100.0, 123.4)] == ["99.50", "100", "123"]


def test_a_failed_row_says_why_in_short_and_has_dashes(table_results):
    rows = table_results["rows"]
    rows[4] |= {"error": "x" * 80, "out_of_memory": False}
    point, cost = bench_tables(table_results)
    assert point.rows[4] == ("theirs, bf16", "x" * 60, *"––––––")
    assert point.columns == (
        *("", "ms", "range", "peak MiB", "px mean", "px 99 %", "first call s", "times as fast"),
    )
    assert point.rows[3] == (
        *("theirs, tf32", "60.00", "54.55 to 66.67", "5", "–", "–", "1.5", "1.00"),
    )
    assert (point.words, cost.words) == (1, 2)
    assert cost.title == "What LCV costs: net, 64×72, 2 iterations"
    assert cost.rows[0][0] == "all-pairs, plain float32"
    rows[0]["peak_bytes"] = None
    assert bench_tables(table_results)[0].rows[0][3] == "unknown"
    assert failed({"error": "e"}) == "e"


def test_what_lcv_costs_is_the_median_over_turns(table_results):
    ours, without = table_results["rows"][:2]
    ours["seconds"], without["seconds"] = [0.03, 0.05, 0.02], [0.01, 0.01, 0.01]
    (_, cost) = bench_tables(table_results)
    assert cost.rows[0][3:] == ("+20.00", "+111.1")  # of a median of 18 ms
    without["error"] = "gone"
    assert len(bench_tables(table_results)) == 1
    del without["error"]
    without["precision"] = "tf32"
    assert len(bench_tables(table_results)) == 1  # nothing differs in LCV alone


def test_the_row_to_compare_with_is_a_plain_one_that_was_measured(table_results):
    rows = table_results["rows"]
    assert baseline(rows)["label"] == "theirs, tf32"
    rows[3]["engine"] = "compiled"
    assert baseline(rows)["label"] == "theirs, float32"
    rows[2]["error"] = "gone"
    assert baseline(rows) is None


def test_words_about_a_machine(table_results):
    origin = {"device": "4 cores", "threads": 4, "torch": "2", "commit": None}
    found = {**table_results, "provenance": origin, "missing": [], "packages": {}}
    assert machine_words(found) == "4 cores, 4 threads, torch 2."


def test_a_growth_table_shortens_errors(growth_results):
    growth_results["rows"][-1] |= {"error": "y" * 40, "out_of_memory": False}
    (table,) = bench_tables(growth_results)
    assert table.rows[1][2] == "y" * 20
    assert table.title == "How cost grows: net"
    assert table.words == 1

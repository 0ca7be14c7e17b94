"""Tables name every number, put the protocol's first, and say nothing twice."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from lcv.evaluate.compare import Difference, compare
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import DatasetResult, PairResult, Result
from lcv.evaluate.tables import Grid, comparison_table, dataset_tables, number, protocol_text


def made(label, dataset="kitti2015", weights=None, protocol="raft", **metrics):
    sums = {"pixels/all": 4, "error/all": 4.0, "outlier/all": 1, "wauc/all": 1.0}
    sums |= dict.fromkeys(("px1/all", "px3/all", "px5/all"), 0)
    settings = {"iters": 24, "pad": "kitti"}
    words = None if weights is None else {"file": weights}
    each = DatasetResult(metrics, (PairResult("a", "a", sums),), settings, {"name": label}, words)
    return Result({dataset: each}, PROTOCOLS[protocol], {}, label)


def text(*tables):
    memory = io.StringIO()
    console = Console(width=140, file=memory)
    for table in tables:
        console.print(table.rich())
    return memory.getvalue()


def rows(shown):
    lines = (line.strip("│").split("│") for line in shown.splitlines() if "│" in line)
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in lines}


def test_a_row_a_metric_a_column_a_network():
    first = made("raft-large", weights="a.pth", epe=1.23456, epe_image=1.0, fl=12.345, fl_bg=3.0)
    second = made("vcn", epe=2.0, epe_image=2.5, fl=1.0)
    (table,) = dataset_tables([first, second])
    shown = text(table)
    assert "kitti2015: 1 pair, protocol raft" in shown
    assert "24 iterations, kitti padding; float32" in shown
    assert "raft-large, a.pth" in shown
    assert rows(shown) == {
        "EPE per image": ["px", "1.000", "2.500"],
        "Fl-all": ["%", "12.35", "1.00"],
        "EPE": ["px", "1.235", "2.000"],
        "Fl-bg": ["%", "3.00", "–"],
    }
    assert list(rows(shown))[:2] == ["EPE per image", "Fl-all"], "what RAFT quotes on KITTI"


def test_what_says_the_same_is_said_once_by_the_protocols_name():
    numbers = {"epe": 1.0, "epe_noc": 1.0, "epe_occ": 2.0, "epe_matched": 1.0, "epe_unmatched": 2.0}
    shown = rows(text(*dataset_tables([made("m", "sintel-clean", protocol="sintel", **numbers)])))
    assert list(shown) == ["EPE", "EPE matched", "EPE unmatched"]
    shown = rows(text(*dataset_tables([made("m", "sintel-clean", **numbers)])))
    assert list(shown) == ["EPE", "EPE noc", "EPE occ"]


def test_the_last_line_says_how_the_protocol_measures():
    protocol = replace(PROTOCOLS["vcn"], validity="not-invalid", warm_start=True)
    (full,) = dataset_tables([replace(made("m", epe=1.0), protocol=protocol)])
    assert full.caption == (
        "24 iterations, kitti padding; float32; flow cut down to 1/64 px and clipped, as RAFT and "
        "VCN write a KITTI PNG; true flow under 1000 px; every pixel whose truth is known and that "
        "Sintel's `invalid` map does not mark; warm start. Above the line: what the protocol quotes."
    )


def test_a_table_for_every_dataset():
    tables = dataset_tables([made("m", "a", epe=1.0), made("m", "b", epe=1.0)])
    assert [table.title.partition(":")[0] for table in tables] == ["a", "b"]


def test_plain_letters_say_the_same():
    (table,) = dataset_tables([made("m", epe=1.0, epe_image=1.5, fl=2.0, px1=50.0)])
    assert table.text().splitlines() == [
        "kitti2015: 1 pair, protocol raft",
        "metric         unit      m",
        "--------------------------",
        "EPE per image  px    1.500",
        "Fl-all         %      2.00",
        "--------------------------",
        "EPE            px    1.000",
        "< 1 px         %     50.00",
        "24 iterations, kitti padding; float32. Above the line: what the protocol quotes.",
    ]


def test_units_decide_the_digits():
    assert number(0.14236, "px") == "0.142"
    assert number(99.126, "%") == "99.13"
    assert {metric.unit for metric in METRICS.values()} == {"px", "%"}


def test_a_comparison_names_both_and_admits_what_it_does_not_know():
    first, second = made("one", epe=1.0), made("two", epe=1.0)
    shown = text(comparison_table(first, second, compare(first, second)))
    assert "two (B) against one (A), protocol raft" in shown
    assert "unknown *" in shown
    assert "*: fewer than 10 pairs, too few for an interval to be relied on" in shown


def test_the_width_is_that_of_the_drawn_table():
    first, second = made("one", epe=1.0), made("two", epe=1.0)
    for table in (
        *dataset_tables([first]),
        comparison_table(first, second, compare(first, second)),
    ):
        frame = next(line for line in text(table).splitlines() if line.startswith("┏"))
        assert table.width() == len(frame)


def test_every_protocol_says_where_it_is_from_and_how_it_measures():
    shown = protocol_text()
    assert shown.startswith(
        """\
raft: RAFT's evaluate.py; what it does not evaluate is called as in its demo.py
  averages: EPE over all pixels, on KITTI within each image first; Fl over all pixels
  chairs: 24 iterations, sintel padding; quotes epe
  sintel: 32 iterations, sintel padding; quotes epe, px1, px3, px5
  kitti: 24 iterations, kitti padding; quotes epe_image, fl
  any other: 20 iterations, sintel padding; quotes epe, px1, px3, px5
  counts every pixel whose truth is known
  measures flow as the network gives it; computed in float32
torchvision: """
    )
    assert "  all datasets: the network's own sizes; quotes fl, epe\n" in shown
    assert "whose truth is known and under 1000 px in both components\n" in shown
    assert "\nkitti: KITTI's development kit" in shown


def test_a_comparison_in_plain_letters():
    """Ten pairs are enough for an interval, nine are marked."""
    row = Difference("kitti2015", "epe", "px", 10, 1.0, 1.5, 0.5, 0.25, 0.75, 0.0215, 1, 2, 7)
    few = replace(row, dataset="sintel", metric="fl", unit="%", pairs=9, low=-math.inf)
    first, second = made("one", epe=1.0), made("", epe=1.0)
    table = comparison_table(first, second, [row, few])
    assert table.text().splitlines() == [
        "second (B) against one (A), protocol raft",
        "dataset    metric     pairs      A      B    B − A       95 % interval  B <, =, > A       p",
        91 * "-",
        "kitti2015  EPE, px       10  1.000  1.500  +0.5000  [+0.2500, +0.7500]      1, 2, 7  0.0215",
        "sintel     Fl-all, %      9   1.00   1.50  +0.5000           unknown *      1, 2, 7  0.0215",
        "Means over pairs of each pair's own value. Interval: bootstrap over pairs. p: sign test, "
        "pair by pair. *: fewer than 10 pairs, too few for an interval to be relied on.",
    ]
    scenes = comparison_table(made("", epe=1.0), second, [row], by_scene=True)
    assert scenes.title == "second (B) against first (A), protocol raft"
    assert scenes.caption == (
        "Means over pairs of each pair's own value. Interval: bootstrap over scenes. p: sign test, "
        "pair by pair."
    )


def test_two_pairs_are_in_the_plural():
    result = made("m", epe=1.0)
    (pair,) = result.datasets["kitti2015"].pairs
    both = replace(result.datasets["kitti2015"], pairs=(pair, pair))
    (table,) = dataset_tables([replace(result, datasets={"kitti2015": both})])
    assert table.title == "kitti2015: 2 pairs, protocol raft"


def test_a_table_without_a_rule_and_with_more_words():
    grid = Grid("title", ("a", "b", "c"), (("1", "22", "3"), ("4", "5", "666")), "end", words=1)
    assert grid.text() == "title\na   b    c\n----------\n1  22    3\n4   5  666\nend\n"
    assert grid.width() == 1 + 2 + 3 + 3 * 3 + 1
    assert [column.justify for column in grid.rich().columns] == ["left", "right", "right"]
    ruled = replace(grid, rule=1, words=2)
    assert ruled.text().splitlines()[3:6] == ["1  22    3", "----------", "4  5   666"]
    assert [row.end_section for row in ruled.rich().rows] == [True, False]


@pytest.mark.parametrize(
    ("columns", "terminal", "drawn"), [(16, True, True), (15, True, False), (99, False, False)]
)
def test_a_table_is_drawn_where_it_fits(monkeypatch, capsys, columns, terminal, drawn):
    grid = Grid("title", ("a", "b", "c"), (("1", "22", "333"),), "end")
    memory = io.StringIO()
    console = Console(width=columns, file=memory, force_terminal=terminal, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda: console)
    grid.show()
    assert ("┃" in memory.getvalue()) == drawn
    assert capsys.readouterr().out == ("" if drawn else grid.text() + "\n")


def test_a_table_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    grid = Grid("title", ("a",), (("1",),), "end")
    grid.show()
    assert capsys.readouterr().out == grid.text() + "\n"

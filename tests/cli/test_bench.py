"""`lcv bench`: a table, a file and a picture, or a sentence before anything is measured."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
from PIL import Image

import lcv.bench
from lcv.bench import Point
from lcv.cli import bench as verb
from lcv.cli import main as cli


@pytest.fixture
def asked(monkeypatch):
    """The cells that would be measured; those of frames above 1000 fail."""
    cells = []

    def answer(worker, task, job, found):
        cells.extend(job)
        found["provenance"] = {"device": "a CPU, 2 cores", "threads": 1, "torch": "2"}
        numbers = {"seconds": [0.1], "median_seconds": 0.1, "first_seconds": 1, "peak_bytes": None}
        bad = {"error": "too large", "out_of_memory": False}
        return [bad if cell.point.height > 1000 else numbers for cell in job]

    class Idle:
        def close(self):
            pass

    monkeypatch.setattr("lcv.bench.run._ask", answer)
    monkeypatch.setattr("lcv.bench.run.Worker", Idle)
    monkeypatch.setattr("lcv.bench.cells.importlib.util.find_spec", lambda name: None)
    return cells


def points(cells):
    return list(dict.fromkeys(cell.point for cell in cells))


def test_a_table_a_file_and_a_picture_drawn_from_the_file(asked, tmp_path, capsys):
    out, plot = tmp_path / "b.json", tmp_path / "b.png"
    words = ["--size", "64x72@5", "128X96", "--iters", "3", "--repeats", "1", "-o", str(out)]
    assert cli.main(["bench", *words]) == 0
    shown = capsys.readouterr().out
    assert "raft-small, 64×72, 5 iterations" in shown
    assert "unknown" in shown  # the peak, where the system does not tell
    assert points(asked) == [Point(64, 72, 1, 5), Point(128, 96, 1, 3)]
    written = json.loads(out.read_text())
    assert written["format"] == "lcv bench 2"
    assert len(written["rows"]) == len(asked)
    asked.clear()
    assert cli.main(["bench", "--from", str(out), "--plot", str(plot)]) == 0
    assert asked == []
    with Image.open(plot) as picture:
        assert (picture.format, round(picture.info["dpi"][0])) == ("PNG", 130)
    assert "raft-small, 64×72, 5 iterations" in capsys.readouterr().out


def test_what_failed_is_in_the_table_and_in_the_exit_code(asked, capsys):
    assert cli.main(["bench", "--size", "64x72", "2000x72"]) == 1
    assert capsys.readouterr().out.count("too large") == 5


def test_growth_varies_one_axis_at_a_time(asked):
    words = ["--size", "64x72", "128x96", "--batch", "1", "2", "--iters", "3", "--iters", "1"]
    assert cli.main(["bench", "--growth", *words]) == 0
    base = Point(64, 72, 1, 3)
    others = {Point(128, 96, 1, 3), Point(64, 72, 2, 3), Point(64, 72, 1, 1)}
    assert {*points(asked)} == {base, *others}


def test_what_is_not_said_has_a_default(asked):
    assert cli.main(["bench"]) == 0
    assert points(asked) == [Point(440, 1024, 1, 12)]
    assert {cell.model for cell in asked} == {"raft-small"}


def test_without_matplotlib_the_numbers_are_kept_and_the_way_to_plot_them_told(
    asked, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("lcv.cli.bench._can_plot", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "--size", "64x72", "--plot", "b.png"]) == 2
    assert "pip install 'lcv-flow[report]'; or keep the numbers with -o" in capsys.readouterr().err
    assert asked == []
    assert cli.main(["bench", "--size", "64x72", "--plot", "b.png", "-o", "b.json"]) == 0
    assert "then `lcv bench --from b.json --plot b.png`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "64"], "--size is '64', wanted HxW, for instance 440x1024"),
        (["--size", "0x64@2"], "--size is '0x64', wanted HxW"),
        (["--size", "64x64@0"], "--size is '0', wanted a whole number of 1 or more"),
        (["--growth", "--compiled"], "--compiled does not go together with --growth"),
        (["--growth", "--size", "64x72@2"], "--size is HxW@N, wanted HxW: with --growth"),
        (
            ["--size", "64x72", "40x60"],
            "lcv: --size is 40x60, but raft-small needs at least 57x57\n",
        ),
        (["--size", "64x64", "--model", "vcn"], "--size is 64x64, but vcn needs at least 65x65"),
        (
            ["--model", "raft"],
            "there are raft-large, raft-small, vcn, vcn-small, ddflow, and `lcv models`",
        ),
        (["--model", "raft-smal"], "--model: unknown model 'raft-smal' (did you mean raft-small?)"),
        (["--peers", "torchvison"], "--peers is 'torchvison', wanted torchvision, ptlflow or none"),
        (["--repeats", "0"], "--repeats is '0', wanted a whole number of 1 or more"),
        (["-o", "none/b.json"], "none/b.json: the folder none does not exist; make it first"),
        (["--from", "b.json"], "b.json: cannot be read: No such file or directory"),
        (
            ["--from", "old.json"],
            "old.json: its format is 'lcv bench 1', not 'lcv bench 2'; wanted a file that `lcv bench -o` wrote",
        ),
    ],
)
def test_mistakes(asked, words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text('{"format": "lcv bench 1"}')
    assert cli.main(["bench", *words]) == 2
    assert message in capsys.readouterr().err
    assert asked == []


def test_sizes_with_and_without_iterations():
    assert verb.size_and_iters("440x1024") == (440, 1024, None)
    assert verb.size_and_iters(" 64x72@12 ") == (64, 72, 12)


def test_every_combination_is_a_point(monkeypatch):
    """Iterations of a size of its own are in place of the others."""
    found = {}

    def plan_table(models, points, **more):
        found.update(more, models=models, points=points)

    monkeypatch.setattr("lcv.bench.plan_table", plan_table)
    words = ["--size", "64x72", "80x96@5", "--batch", "1", "2", "--iters", "3", "4"]
    verb._plan(verb._parser().parse_args(words))
    assert found["points"] == [
        *(Point(64, 72, batch, iters) for batch in (1, 2) for iters in (3, 4)),
        Point(80, 96, 1, 5),
        Point(80, 96, 2, 5),
    ]
    assert (found["models"], found["peers"]) == (["raft-small"], None)
    verb._plan(verb._parser().parse_args(["--peers", "none", "--compiled"]))
    assert found["points"] == [Point(440, 1024, 1, 12)]
    assert (found["peers"], found["compiled"], found["device"]) == ([], True, "cpu")


def test_who_interrupts_gets_what_was_measured_and_its_exit_code(asked, tmp_path, monkeypatch):
    real = lcv.bench.bench

    def interrupted(*words, **options):
        return {**real(*words, **options), "interrupted": True}

    monkeypatch.setattr("lcv.bench.bench", interrupted)
    out = tmp_path / "b.json"
    assert cli.main(["bench", "--size", "64x72", "-o", str(out)]) == 130
    assert json.loads(out.read_text())["interrupted"] is True
    assert cli.main(["bench", "--from", str(out)]) == 0, "to look at it is no interruption"


def test_whether_matplotlib_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    assert verb._can_plot() is True
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert verb._can_plot() is False

"""`lcv bench`: a table and a file, or a sentence before anything is measured."""

from __future__ import annotations

import json

import pytest

from lcv.cli import main as cli


@pytest.fixture
def rows(monkeypatch):
    """What is to be measured, without measuring it."""
    asked = []

    def measured(cell):
        asked.append(cell)
        facts = {"device": "a CPU", "threads": 1, "torch": "2"}
        numbers = {"seconds": [0.1], "peak_bytes": None, "foretold_bytes": 5}
        return {"error": "too large"} if cell.height > 1000 else {**numbers, "provenance": facts}

    monkeypatch.setattr("lcv.bench.cells._measured", measured)
    return asked


def test_a_table_and_a_file(rows, tmp_path, capsys):
    out = tmp_path / "b.json"
    words = ["bench", "--size", "64x72", "128X96", "--iters", "3", "--repeats", "1", "-o", str(out)]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "raft-small  yes  on-demand  128×96" in shown
    assert "unknown" in shown  # the peak, where the system does not tell
    written = json.loads(out.read_text())
    assert written["format"] == "lcv bench 1"
    assert {(cell.height, cell.width) for cell in rows} == {(64, 72), (128, 96)}
    assert {(cell.iters, cell.repeats) for cell in rows} == {(3, 1)}
    assert len(written["rows"]) == len(rows) == 8


def test_what_failed_is_in_the_table_and_in_the_exit_code(rows, capsys):
    assert cli.main(["bench", "--size", "64x72", "2000x72"]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if "2000×72" in line]
    assert len(failed) == 4
    assert all("failed" in line and "too large" in line for line in failed)


@pytest.mark.parametrize(
    "words",
    [
        ["--size", "64x72", "--size", "72x96", "--model", "raft-small", "--model", "ddflow"],
        ["--size", "64x72", "72x96", "--model", "raft-small", "ddflow"],
    ],
)
def test_options_that_are_repeated_add_up(rows, words):
    assert cli.main(["bench", *words]) == 0
    found = {(cell.model, cell.height, cell.width) for cell in rows}
    assert found == {(name, *s) for name in ("raft-small", "ddflow") for s in [(64, 72), (72, 96)]}


def test_what_is_not_said_has_a_default(rows):
    assert cli.main(["bench"]) == 0
    assert {(cell.model, cell.height, cell.width) for cell in rows} == {("raft-small", 440, 1024)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "64"], "--size is '64', wanted HxW, for instance 440x1024"),
        (["--size", "0x64"], "--size is '0x64', wanted HxW"),
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
        (["--repeats", "0"], "--repeats is '0', wanted a whole number of 1 or more"),
        (["-o", "none/b.json"], "none/b.json: the folder none does not exist; make it first"),
    ],
)
def test_mistakes(rows, words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", *words]) == 2
    assert message in capsys.readouterr().err
    assert rows == []

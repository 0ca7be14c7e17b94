"""The measuring process: a line in, a line out, and nothing but an answer whatever goes wrong."""

from __future__ import annotations

import io
import json
import os
import runpy
import sys
from importlib.metadata import version
from pathlib import Path

import torch

from lcv.bench import worker
from lcv.bench.cells import Cell, Point, offer_of, table_jobs
from lcv.bench.worker import answer, as_task, job_of, serve


def test_a_job_comes_back_as_it_went():
    for job in table_jobs(offer_of("raft-small"), Point(64, 72), gpu=True):
        assert job_of(json.loads(as_task(job, device="cpu"))["cells"]) == job


def test_an_answer_holds_rows_and_where_they_come_from(folder):
    cell = Cell("raft-small", Point(64, 72, 1, 1), "none", "on-demand")
    task = as_task((cell,), device="cpu", folder=str(folder), repeats=1, seconds=1.0)
    found = json.loads(json.dumps(answer(json.loads(task))))
    assert len(found["rows"][0]["seconds"]) == 1
    assert found["provenance"]["threads"] >= 1
    assert found["packages"] == {}


def test_what_goes_wrong_is_an_answer_too():
    def work(task):
        if task == "bad":
            raise ValueError("two\nlines")
        return {"rows": task}

    out = io.StringIO()
    serve(io.StringIO('"bad"\n[1]\n'), out, work)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert answers == [{"error": "ValueError: two lines"}, {"rows": [1]}]


def test_versions_of_peers_are_told_or_unknown(monkeypatch):
    cells = [
        Cell("raft-small", Point(64, 72), "none", "", peer=name)
        for name in ("torch", "none-such-package", None)
    ]
    asked = []

    def measured(*words):
        asked.append(words)
        return ["rows"]

    monkeypatch.setattr("lcv.bench.measure.measure", measured)
    task = as_task(tuple(cells), device="cpu", folder="f", repeats=3, seconds=2.0)
    found = answer(json.loads(task))
    assert found["rows"] == ["rows"]
    assert found["packages"] == {"torch": version("torch"), "none-such-package": "unknown"}
    assert asked == [(tuple(cells), Path("f"), torch.device("cpu"), 3, 2.0)]


def test_an_error_has_300_letters_at_most():
    def work(task):
        raise ValueError("x" * 400)

    out = io.StringIO()
    serve(io.StringIO("1\n"), out, work)
    assert json.loads(out.getvalue()) == {"error": ("ValueError: " + "x" * 400)[:300]}


def test_what_a_network_prints_is_not_among_the_answers(monkeypatch):
    """The process keeps its standard output for them; what is printed goes to the error stream."""
    events, answers = [], io.StringIO()

    def opened(*words, **options):
        events.append((*words, options))
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", lambda stream: events.append(("dup", stream)) or 9)
        patch.setattr(os, "dup2", lambda *streams: events.append(("dup2", *streams)))
        patch.setattr(os, "fdopen", opened)
        patch.setattr(sys, "stdin", io.StringIO("{}\n"))
        runpy.run_path(worker.__file__, run_name="__main__")
    assert events == [("dup", 1), (9, "w", {"encoding": "utf-8"}), ("dup2", 2, 1)]
    assert json.loads(answers.getvalue()) == {"error": "KeyError: 'cells'"}

"""Running a plan: a process that dies costs its job alone, and Ctrl-C keeps what there is."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import ClassVar

import pytest

from lcv.bench import Point, bench, plan_table, run
from lcv.errors import LcvError

FACTS = {"device": "a GPU", "threads": 1, "torch": "2", "commit": None}
GOOD = {"seconds": [0.3, 0.1, 0.2], "median_seconds": 0.2, "peak_bytes": 3, "first_seconds": 1.0}


class Fake:
    """A worker that answers from a list: rows' numbers, or what to raise."""

    answers: list
    made = closed = 0
    tasks: ClassVar[list] = []

    def __init__(self):
        Fake.made += 1

    def ask(self, task):
        Fake.tasks.append(json.loads(task))
        given = self.answers.pop(0)
        if isinstance(given, BaseException):
            raise given
        rows = [given for _ in json.loads(task)["cells"]]
        return json.dumps({"rows": rows, "provenance": FACTS, "packages": {"torchvision": "1"}})

    def close(self):
        Fake.closed += 1


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(run, "Worker", Fake)
    Fake.made = Fake.closed = 0
    Fake.tasks.clear()
    return Fake


@pytest.fixture(scope="module")
def plan():
    """Two jobs, of 4 cells and of 1."""
    return plan_table(["raft-small"], [Point(64, 72)], peers=[])


def test_rows_of_a_process_that_died_say_so_and_the_others_are_there(fake, plan):
    fake.answers = [EOFError("the process was killed"), GOOD]
    told, kept = [], []
    found = bench(
        plan,
        progress=lambda *words: told.append(words),
        keep=lambda so_far: kept.append(len(so_far["rows"])),
    )
    assert [row.get("error") for row in found["rows"]] == ["the process was killed"] * 4 + [None]
    assert [(done, total) for _, done, total in told] == [(0, 5), (4, 5)]
    assert told[0][0] == "lcv, all-pairs, float32 and 3 more, 64×72"
    assert kept == [4, 5]
    assert fake.made == 2
    assert found["rows"][4]["label"] == "lcv, on-demand, float32"
    assert json.loads(json.dumps(found)) == found


def test_on_a_gpu_one_process_goes_on_after_lack_of_memory_but_no_other_error(fake):
    plan = plan_table(["vcn-small"], [Point(72, 72)] * 2, device="cuda", peers=[])
    memory = {"error": "OutOfMemoryError", "out_of_memory": True}
    fake.answers = [memory, GOOD, *[GOOD] * (len(plan.jobs) - 2)]
    bench(plan)
    assert fake.made == 1
    fake.answers = [{"error": "RuntimeError", "out_of_memory": False}, *[GOOD] * len(plan.jobs)]
    bench(plan)
    assert fake.made == 3


def test_ctrl_c_keeps_what_was_measured(fake, plan):
    fake.answers = [GOOD, KeyboardInterrupt()]
    found = bench(plan)
    assert found["interrupted"]
    assert len(found["rows"]) == 4
    fake.answers = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):  # there is nothing to keep
        bench(plan)


def test_nothing_measured_is_an_error_with_its_reason(fake, plan):
    fake.answers = [EOFError("no torch"), EOFError("no torch")]
    with pytest.raises(LcvError, match="nothing could be measured; the first says: no torch"):
        bench(plan)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was killed, for lack of memory probably"),
        ("import sys; sys.exit('no such thing')", "ended with 1: no such thing"),
    ],
)
def test_why_a_process_died(monkeypatch, code, reason):
    monkeypatch.setattr(run.Worker, "command", (sys.executable, "-c", code))
    worker = run.Worker()
    with pytest.raises(EOFError, match=reason):
        worker.ask("{}")
    worker.close()


def test_results_hold_everything_about_a_run(fake, plan):
    fake.answers = [GOOD, GOOD]
    found = bench(replace(plan, missing=("ptlflow",), base=Point(64, 72)))
    rows = found.pop("rows")
    assert found == {
        "format": "lcv bench 2",
        "provenance": FACTS,
        "packages": {"torchvision": "1"},
        "missing": ["ptlflow"],
        "base": {"height": 64, "width": 72, "batch": 1, "iters": 12},
        "interrupted": False,
    }
    assert rows[1] == {
        "model": "raft-small",
        "label": "lcv, all-pairs, without LCV, float32",
        "peer": None,
        "lcv": "none",
        "volume": "all-pairs",
        "engine": "plain",
        "precision": "float32",
        **found["base"],
        **GOOD,
    }
    # At least ten calls of a row in two seconds, unless told otherwise.
    assert {(task["device"], task["repeats"], task["seconds"]) for task in fake.tasks} == {
        ("cpu", 10, 2.0)
    }
    assert (fake.made, fake.closed) == (2, 2)  # on a CPU memory counts for the whole process
    assert bench(replace(plan, jobs=[]))["rows"] == []


def test_a_worker_is_closed_whatever_happens(fake, plan):
    on_gpu = replace(plan, device="cuda")
    fake.answers = [GOOD, GOOD]
    bench(on_gpu)
    assert (fake.made, fake.closed) == (1, 1)
    fake.answers = [GOOD, KeyboardInterrupt()]
    bench(on_gpu)
    assert (fake.made, fake.closed) == (2, 2)


def test_what_is_at_work_in_words(plan):
    (cell, *_), (alone,) = plan.jobs
    assert run._at_work((alone,)) == "lcv, on-demand, float32, 64×72"
    two = replace(alone, point=Point(64, 72, 2))
    assert run._at_work((two, cell)) == "lcv, on-demand, float32 and 1 more, 64×72, batch 2"


def test_a_worker_answers_and_its_last_words_are_kept_short(monkeypatch):
    code = "print(input() + '!', flush=True); import sys; sys.exit('a\\n' + 300 * 'x')"
    monkeypatch.setattr(run.Worker, "command", (sys.executable, "-c", code))
    worker = run.Worker()
    assert worker.ask("task") == "task!\n"
    with pytest.raises(EOFError) as caught:
        worker.ask("again")
    assert str(caught.value) == "the process ended with 1: " + 200 * "x"
    worker.close()
    assert worker.errors.closed
    assert worker.process.stdin.closed
    assert worker.process.stdout.closed


def test_a_worker_that_died_before_it_was_asked_is_told_by_its_last_words(monkeypatch):
    monkeypatch.setattr(run.Worker, "command", (sys.executable, "-c", "raise SystemExit('gone')"))
    worker = run.Worker()
    worker.process.wait()
    with pytest.raises(EOFError, match="ended with 1: gone"):
        worker.ask("task")
    worker.close()  # what it never read does not matter

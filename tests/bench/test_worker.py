"""The measuring process: a line in, a line out, and nothing but an answer whatever goes wrong."""

from __future__ import annotations

import io
import json

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

"""The process that measures: jobs come in as lines of JSON, rows go out as lines of JSON.

It is a process of its own so that nothing it does, dying included, costs the caller what is measured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from lcv.bench.cells import Cell, Job, Point


def as_task(job: Job, **settings: Any) -> str:
    """A job and its settings, as one line."""
    return json.dumps({"cells": [asdict(cell) for cell in job], **settings})


def job_of(cells: list[dict[str, Any]]) -> Job:
    """The inverse of `as_task`, for the cells."""
    return tuple(Cell(**{**each, "point": Point(**each["point"])}) for each in cells)


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Rows of one job, and what they were measured with."""
    import torch

    from lcv.bench.measure import measure
    from lcv.provenance import provenance

    job, device = job_of(task["cells"]), torch.device(task["device"])
    rows = measure(job, Path(task["folder"]), device, task["repeats"], task["seconds"])
    packages = {}
    for name in {cell.peer for cell in job} - {None}:
        try:
            packages[name] = version(str(name))
        except PackageNotFoundError:
            packages[name] = "unknown"
    return {"rows": rows, "provenance": provenance(device=device), "packages": packages}


def serve(tasks: IO[str], answers: IO[str], work: Callable[[dict[str, Any]], Any] = answer) -> None:
    """Until there are no more tasks; what goes wrong outside a measurement is an answer too."""
    for line in tasks:
        try:
            found = work(json.loads(line))
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    # Whatever a network prints goes to the error stream; the answers keep the other to themselves.
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, own)

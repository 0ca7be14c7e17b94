"""A plan to results: a process measures job after job, and is replaced if it dies."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Any

from lcv.bench.cells import Cell, Job
from lcv.bench.plan import Plan
from lcv.bench.worker import as_task
from lcv.errors import LcvError
from lcv.models.factory import label_of

FORMAT = "lcv bench 2"


class Worker:
    """A process that measures. `ask` raises EOFError, with the reason, if it dies."""

    command = (sys.executable, "-m", "lcv.bench.worker")

    def __init__(self) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the caller, which then ends it
        )

    def ask(self, task: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(task + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EOFError(self._reason())
        return line

    def _reason(self) -> str:
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        if code == -9:
            return "the process was killed, for lack of memory probably"
        return f"the process ended with {code}" + (f": {said[-1][:200]}" if said else "")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a task that a dead process never read
                    stream.close()


def bench(
    plan: Plan,
    *,
    repeats: int = 10,
    seconds: float = 2.0,
    progress: Callable[[str, int, int], None] | None = None,
    keep: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Measure a plan; plain values of JSON.

    repeats, seconds: timed calls of a row; fewer, but at least 3, if they take longer together
    progress: called with what is at work, how many rows are done, and of how many
    keep:     called with all there is after every job, to be written down
    A row that fails, for lack of memory say, has an `error` in place of its numbers. Ctrl-C ends the
    measurement and keeps the rows so far, with `interrupted`.
    """
    found: dict[str, Any] = {
        "format": FORMAT,
        "provenance": None,
        "packages": {},
        "missing": list(plan.missing),
        "base": None if plan.base is None else asdict(plan.base),
        "interrupted": False,
        "rows": [],
    }
    total = sum(map(len, plan.jobs))
    worker: Worker | None = None
    with tempfile.TemporaryDirectory(prefix="lcv-bench-") as folder:
        settings = {"folder": folder, "repeats": repeats, "seconds": seconds}
        try:
            for job in plan.jobs:
                if progress is not None:
                    progress(_at_work(job), len(found["rows"]), total)
                worker = worker or Worker()
                rows = _ask(worker, as_task(job, device=plan.device, **settings), job, found)
                found["rows"] += [_row(cell, row) for cell, row in zip(job, rows, strict=True)]
                if keep is not None:
                    keep(found)
                # On a CPU memory counts for the whole process; on a GPU an error can stay in it.
                bad = any("error" in row and not row.get("out_of_memory") for row in rows)
                if plan.device == "cpu" or bad:
                    worker.close()
                    worker = None
        except KeyboardInterrupt:
            if not found["rows"]:
                raise
            found["interrupted"] = True
        finally:
            if worker is not None:
                worker.close()
    if found["rows"] and all("error" in row for row in found["rows"]):
        first = found["rows"][0]["error"]
        raise LcvError(f"bench: nothing could be measured; the first says: {first}")
    return found


def _ask(worker: Worker, task: str, job: Job, found: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each cell of a job, whatever happens to the process."""
    try:
        answer = json.loads(worker.ask(task))
    except EOFError as error:
        answer = {"error": str(error)}
    if "error" in answer:
        return [{"error": answer["error"]} for _ in job]
    found["provenance"] = answer["provenance"]
    found["packages"] |= answer["packages"]
    rows: list[dict[str, Any]] = answer["rows"]
    return rows


def _row(cell: Cell, numbers: dict[str, Any]) -> dict[str, Any]:
    told = {
        "model": label_of(cell.model),
        "label": cell.label,
        "peer": cell.peer,
        "lcv": cell.lcv,
        "volume": cell.volume,
        "engine": cell.engine,
        "precision": cell.precision,
    }
    return {**told, **asdict(cell.point), **numbers}


def _at_work(job: Job) -> str:
    """`lcv, all-pairs, float32 and 3 more, 440×1024`, for a progress bar."""
    cell = job[0]
    more = f" and {len(job) - 1} more" if len(job) > 1 else ""
    batch = f", batch {cell.point.batch}" if cell.point.batch > 1 else ""
    return f"{cell.label}{more}, {cell.point.height}×{cell.point.width}{batch}"

"""The ablation itself: every column with every seed, one after the other or several at once.

    study = prepare("out", base, choose(network), seeds=(0, 1, 2))
    run(study)

Finished cells are skipped and unfinished ones resumed, so the same call goes on after any stop.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError, LcvError
from lcv.studies.ablation_cell import INTERRUPTED, note_failure, run_cell
from lcv.studies.ablation_show import write
from lcv.studies.ablation_study import Cell, Study
from lcv.studies.ablation_together import run_seeds
from lcv.train.distributed import check_device, join
from lcv.train.interrupts import interrupts
from lcv.train.log import Listener

Say = Callable[[str], None]
CELL = (sys.executable, "-m", "lcv.studies.ablation_cell")


@dataclass
class Outcome:
    """What became of the cells of one call."""

    done: list[Cell] = field(default_factory=list)
    failed: list[Cell] = field(default_factory=list)
    left: list[Cell] = field(default_factory=list)
    interrupted: bool = False


def run(
    study: Study,
    device: str | None = None,
    jobs: int = 1,
    minutes: float | None = None,
    say: Say = print,
    listeners: tuple[Listener, ...] = (),
    together: bool = False,
) -> Outcome:
    """Take every unfinished cell as far as it goes.

    jobs:     how many cells run at once, each a process of its own where this is more than 1
    minutes:  after these, running cells are stopped and saved; none is begun that would not end
              in time, judged by the slowest one so far
    together: all columns of a seed at once in this process, on the same batches, each made once;
              tables and plot are written after every seed. What a small network leaves idle of a
              large GPU others fill.
    A cell that fails (its loss diverges) is noted, and the others go on.
    """
    if jobs < 1:
        raise ArgumentError(f"jobs is {jobs}, wanted at least 1")
    if minutes is not None and minutes <= 0:
        raise ArgumentError(f"minutes is {minutes}, wanted more than 0")
    if together and jobs > 1:
        raise ArgumentError(f"jobs is {jobs}, and cells that run together share one process")
    todo = [cell for cell in study.cells() if study.result(cell) is None]
    total = len(list(study.cells()))
    if todo:
        check_device(study.base, join(device).device)
        study = study.with_weights()
    say(f"{total - len(todo)} of {total} cells are done")
    if together:
        return _seed_by_seed(study, todo, device, minutes, say)
    if jobs == 1 and minutes is None:
        return _one_by_one(study, todo, device, say, listeners)
    return _Crew(study, todo, device, jobs, minutes, say).work()


def _one_by_one(
    study: Study, todo: list[Cell], device: str | None, say: Say, listeners: tuple[Listener, ...]
) -> Outcome:
    outcome = Outcome(left=list(todo))
    for cell in todo:
        began = time.perf_counter()
        try:
            finished = run_cell(study, cell, device, listeners)
        except KeyboardInterrupt:  # in its last step, or while it was measured
            finished = False
        except LcvError as error:
            note_failure(study.folder_of(cell), error)
            say(f"{cell}: failed: {error}")
            outcome.failed.append(cell)
            outcome.left.remove(cell)
            continue
        if not finished:
            outcome.interrupted = True
            return outcome
        say(line(study, cell, time.perf_counter() - began))
        outcome.done.append(cell)
        outcome.left.remove(cell)
    return outcome


def _seed_by_seed(
    study: Study, todo: list[Cell], device: str | None, minutes: float | None, say: Say
) -> Outcome:
    outcome = Outcome(left=list(todo))
    end = None if minutes is None else time.perf_counter() + 60 * minutes

    def tell(cell: Cell, seconds: float, error: LcvError | None) -> None:
        outcome.left.remove(cell)
        if error is None:
            say(line(study, cell, seconds))
            outcome.done.append(cell)
        else:
            say(f"{cell}: failed: {error}")
            outcome.failed.append(cell)

    with interrupts() as arrived:

        def stop() -> bool:
            return bool(arrived) or (end is not None and time.perf_counter() > end)

        for _ in run_seeds(study, todo, device, say, tell, stop):
            write(study)  # so that they are there, whatever becomes of the next
        outcome.interrupted = bool(arrived) or bool(outcome.left)
    return outcome


def line(study: Study, cell: Cell, seconds: float) -> str:
    """A finished cell in a sentence."""
    result = study.result(cell)
    assert result is not None
    numbers = "; ".join(
        f"{name} EPE {test['metrics']['epe']:.3f} px, Fl-all {test['metrics']['fl']:.2f} %"
        for name, test in result["best"]["tests"].items()
    )
    return f"{cell}: {numbers} (best, step {result['best']['step']}; {seconds:.0f} s)"


class _Crew:
    """Cells as processes, so many at once; stopped by SIGTERM, upon which they save."""

    def __init__(
        self,
        study: Study,
        todo: list[Cell],
        device: str | None,
        jobs: int,
        minutes: float | None,
        say: Say,
    ) -> None:
        self.study, self.device, self.jobs, self.say = study, device, jobs, say
        self.outcome = Outcome(left=todo)
        self.waiting = list(todo)
        self.running: dict[Cell, tuple[subprocess.Popen[Any], float]] = {}
        self.began = time.perf_counter()
        self.end = None if minutes is None else self.began + 60 * minutes
        self.slowest = 0.0
        self.arrived: list[int] = []
        self.stopping = False

    def work(self) -> Outcome:
        old = {
            number: signal.signal(number, lambda n, _: self.arrived.append(n))
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            while not self._over():
                self._fill()
                if not self.running:
                    break
                time.sleep(0.1)
                self._collect()
        finally:
            self._stop()
            for number, handler in old.items():
                signal.signal(number, handler)
        self.outcome.interrupted = bool(self.arrived) or bool(self.outcome.left)
        return self.outcome

    def _over(self) -> bool:
        return bool(self.arrived) or (self.end is not None and time.perf_counter() > self.end)

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self.jobs:
            if self.end is not None and time.perf_counter() + self.slowest > self.end:
                return
            cell = self.waiting.pop(0)
            self.running[cell] = (self._begin(cell), time.perf_counter())

    def _begin(self, cell: Cell) -> subprocess.Popen[Any]:
        folder = self.study.folder_of(cell)
        folder.mkdir(parents=True, exist_ok=True)
        words = [str(self.study.folder), cell.column.name, str(cell.seed)]
        weights = self.study.base.model.weights
        words += [] if weights is None else ["--weights", weights]
        words += [] if self.device is None else ["--device", self.device]
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        with (folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                [*CELL, *words],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                # Ctrl-C reaches the whole group of a terminal; the cells are told by us, once.
                start_new_session=True,
            )

    def _collect(self) -> None:
        for cell, (process, began) in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[cell]
            seconds = time.perf_counter() - began
            folder = self.study.folder_of(cell)
            if code == 0:
                self.slowest = max(self.slowest, seconds)
                self.say(line(self.study, cell, seconds))
                self.outcome.done.append(cell)
                self.outcome.left.remove(cell)
                (folder / "output.txt").unlink(missing_ok=True)
            elif code != INTERRUPTED and not self.stopping:
                self.say(f"{cell}: failed: {_why(self.study, cell, folder, code)}")
                self.outcome.failed.append(cell)
                self.outcome.left.remove(cell)

    def _stop(self) -> None:
        self.stopping = True
        for process, _ in self.running.values():
            process.terminate()
        for process, _ in self.running.values():
            process.wait()
        self._collect()


def _why(study: Study, cell: Cell, folder: Path, code: int) -> str:
    said = study.failure(cell)
    if said is not None:
        return said
    lines = (folder / "output.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((each for each in reversed(lines) if each.strip()), "no word")
    reason = f"its process ended with {code}; its last line: {last[:300]}"
    note_failure(folder, LcvError(reason))
    return reason

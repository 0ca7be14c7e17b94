"""Run an ablation: every column with every seed.

    study = prepare("out", base, choose(network), seeds=(0, 1, 2))
    run(study)

Finished cells are skipped and unfinished ones resumed, so the same call continues a stopped study.
Several processes can share a study: each takes cells that no other one is working on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby

from torch import nn

from lcv.errors import ArgumentError, LcvError
from lcv.files import Busy, only_one
from lcv.studies.ablation_cell import measure_cell, note_failure, untrained
from lcv.studies.ablation_show import write
from lcv.studies.ablation_study import Cell, Study
from lcv.studies.columns import config_for
from lcv.train.config import TrainConfig
from lcv.train.distributed import check_device, join
from lcv.train.interrupts import interrupts
from lcv.train.kept import Kept
from lcv.train.log import Listener
from lcv.train.together import run_together

Say = Callable[[str], None]
LOOK_AGAIN = 1.0
"""Seconds between looks at cells that another process is working on."""


@dataclass
class Outcome:
    """What happened to the cells of one call; `left` are those not finished."""

    done: list[Cell] = field(default_factory=list)
    failed: list[Cell] = field(default_factory=list)
    left: list[Cell] = field(default_factory=list)


def run(
    study: Study,
    device: str | None = None,
    minutes: float | None = None,
    say: Say = print,
    listeners: tuple[Listener, ...] = (),
    together: bool = False,
) -> Outcome:
    """Run every unfinished cell; tables and plot are written after every seed.

    minutes:   stop and save after this time, as for SIGTERM and Ctrl-C
    listeners: hear the log of every cell, unless cells run together
    together:  train all columns of a seed at once, on the same batches, each made once; several
               small networks use a large GPU better than one
    A cell that fails (its loss diverges) is noted, and the others continue.
    """
    if minutes is not None and minutes <= 0:
        raise ArgumentError(f"minutes is {minutes}, wanted more than 0")
    cells = list(study.cells())
    left = [cell for cell in cells if study.result(cell) is None]
    if left:
        check_device(study.base, join(device).device)
        study.check_weights()
    say(f"{len(cells) - len(left)} of {len(cells)} cells are done")
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    with interrupts() as arrived:

        def stop() -> bool:
            return bool(arrived) or time.monotonic() > deadline

        runner = _Runner(study, device, stop, say, None if together else listeners, left)
        waiting = list(left)
        while waiting and not stop():
            busy: list[Cell] = []
            for _, same_seed in groupby(waiting, lambda cell: cell.seed):
                chosen = list(same_seed)
                for group in [chosen] if together else [[cell] for cell in chosen]:
                    busy += runner.take(group)
                if not set(chosen) <= set(busy):
                    write(study)
            if waiting := busy:  # until the other processes have finished them, or died
                time.sleep(LOOK_AGAIN)
    return runner.outcome


class _Runner:
    def __init__(
        self,
        study: Study,
        device: str | None,
        stop: Callable[[], bool],
        say: Say,
        listeners: tuple[Listener, ...] | None,
        left: list[Cell],
    ) -> None:
        self.study, self.device, self.stop, self.say = study, device, stop, say
        self.listeners, self.outcome = listeners, Outcome(left=left)
        self.kept = Kept()  # all cells have the same validation and test pairs

    def take(self, cells: Sequence[Cell]) -> list[Cell]:
        """Train these cells side by side and measure them; returns those of other processes."""
        busy, trained = [], []
        with ExitStack() as locks:
            for cell in cells:
                if self.stop():
                    break
                folder = self.study.folder_of(cell)
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    locks.enter_context(only_one(folder / "cell", f"{cell}: is running"))
                except Busy:
                    busy.append(cell)
                    continue
                if self.study.result(cell) is not None:  # another process has finished it
                    self._finished(cell, 0.0)
                elif cell.column.trained:
                    trained.append(cell)
                else:
                    self._measure(cell, untrained(self._config(cell)), time.perf_counter())
            if trained and not self.stop():
                self._train(trained)
        return busy

    def _train(self, cells: list[Cell]) -> None:
        began = time.perf_counter()
        configs = [self._config(cell) for cell in cells]
        heard = [self.listeners or ()] * len(cells)
        ended = run_together(configs, self.device, heard, self.stop, self._pace(cells), self.kept)
        share = (time.perf_counter() - began) / len(cells)
        for cell, config, end in zip(cells, configs, ended, strict=True):
            if end.error is not None:
                self._failed(cell, end.error)
            elif end.model is not None and end.steps == config.steps and not self.stop():
                self._measure(cell, end.model, time.perf_counter() - share)

    def _measure(self, cell: Cell, model: nn.Module, began: float) -> None:
        try:
            measure_cell(self.study, cell, model, join(self.device).device, began, self.kept)
        except LcvError as error:  # a test that cannot be read
            self._failed(cell, error)
        else:
            self._finished(cell, time.perf_counter() - began)

    def _finished(self, cell: Cell, seconds: float) -> None:
        best = (self.study.result(cell) or {})["best"]
        numbers = "; ".join(
            f"{name} EPE {test['metrics']['epe']:.3f} px, Fl-all {test['metrics']['fl']:.2f} %"
            for name, test in best["tests"].items()
        )
        self.say(f"{cell}: {numbers} (best, step {best['step']}; {seconds:.0f} s)")
        self.outcome.done.append(cell)
        self.outcome.left.remove(cell)

    def _failed(self, cell: Cell, error: LcvError) -> None:
        note_failure(self.study.folder_of(cell), error)
        self.say(f"{cell}: failed: {error}")
        self.outcome.failed.append(cell)
        self.outcome.left.remove(cell)

    def _config(self, cell: Cell) -> TrainConfig:
        return config_for(cell.column, self.study.base, cell.seed, self.study.folder_of(cell))

    def _pace(self, cells: list[Cell]) -> Callable[[int, float], None]:
        steps = self.study.base.steps

        def pace(step: int, seconds: float) -> None:
            if self.listeners is None:  # cells run together
                self.say(
                    f"  seed {cells[0].seed}, step {step} of {steps}: {1000 * seconds:.1f} ms a "
                    f"step of {len(cells)} columns, {(steps - step) * seconds:.0f} s of steps to go"
                )

        return pace

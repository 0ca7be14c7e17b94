"""All columns of a seed in one process, side by side: the same batches, made once for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby

import torch

from lcv.errors import LcvError
from lcv.files import only_one
from lcv.studies.ablation_cell import conclude, lighten, note_failure, untrained
from lcv.studies.ablation_study import Cell, Study
from lcv.studies.columns import config_for
from lcv.train.config import TrainConfig
from lcv.train.distributed import join
from lcv.train.kept import Kept
from lcv.train.together import run_together

Say = Callable[[str], None]
Tell = Callable[[Cell, float, LcvError | None], None]
"""Takes a cell that is done or has failed, its seconds, and why it failed."""


def run_seeds(
    study: Study,
    todo: Sequence[Cell],
    device: str | None,
    say: Say,
    tell: Tell,
    stop: Callable[[], bool],
) -> Iterator[int]:
    """Take the cells as far as they go, seed by seed; a seed is given out when it has been tried.

    stop: asked before every step and every measurement; what is not done by then is saved
    """
    kept = Kept()  # validation and test pairs are those of all seeds
    for seed, cells in groupby(todo, lambda cell: cell.seed):
        if stop():
            return
        with ExitStack() as stack:
            for cell in (own := list(cells)):
                folder = study.folder_of(cell)
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(only_one(folder / "cell"))
            _Seed(study, own, join(device).device, device, kept, say, tell, stop).work()
        yield seed


class _Seed:
    def __init__(
        self,
        study: Study,
        cells: list[Cell],
        where: torch.device,
        device: str | None,
        kept: Kept,
        say: Say,
        tell: Tell,
        stop: Callable[[], bool],
    ) -> None:
        self.study, self.cells, self.where, self.device = study, cells, where, device
        self.kept, self.say, self.tell, self.stop = kept, say, tell, stop

    def work(self) -> None:
        trained = []
        for cell in self.cells:
            if self.study.result(cell) is not None:  # by another process, while this one waited
                self.tell(cell, 0.0, None)
            elif cell.column.trained:
                trained.append(cell)
            else:
                model = untrained(self._config(cell))
                self._conclude(cell, model, time.perf_counter())
        if trained and not self.stop():
            self._train(trained)

    def _train(self, cells: list[Cell]) -> None:
        began = time.perf_counter()
        configs = [self._config(cell) for cell in cells]
        ended = run_together(
            configs, self.device, stop=self.stop, pace=self._pace(cells), kept=self.kept
        )
        share = (time.perf_counter() - began) / len(cells)
        for cell, config, end in zip(cells, configs, ended, strict=True):
            if end.error is not None:
                note_failure(self.study.folder_of(cell), end.error)
                self.tell(cell, share, end.error)
            elif end.model is not None and end.steps == config.steps and not self.stop():
                self._conclude(cell, end.model, time.perf_counter() - share)
            else:
                lighten(self.study.folder_of(cell))

    def _conclude(self, cell: Cell, model: torch.nn.Module, began: float) -> None:
        try:
            conclude(self.study, cell, model, self.where, began, self.kept)
        except LcvError as error:  # a test that cannot be read
            note_failure(self.study.folder_of(cell), error)
            self.tell(cell, time.perf_counter() - began, error)
        else:
            self.tell(cell, time.perf_counter() - began, None)

    def _config(self, cell: Cell) -> TrainConfig:
        return config_for(cell.column, self.study.base, cell.seed, self.study.folder_of(cell))

    def _pace(self, cells: list[Cell]) -> Callable[[int, float], None]:
        steps, seed = self.study.base.steps, cells[0].seed

        def pace(step: int, seconds: float) -> None:
            rest = (steps - step) * seconds
            self.say(
                f"  seed {seed}, step {step} of {steps}: {1000 * seconds:.1f} ms a step of "
                f"{len(cells)} columns, {rest:.0f} s of steps to go"
            )

        return pace

"""Several runs on the same batches, side by side in one process.

Every batch is made once and met by all runs, each with a network, optimiser, log and checkpoints
of its own, exactly as it would be alone: on a CPU to the bit. On a GPU runs go along a few lanes,
each a stream: the kernels of a small network fill a part of the device, those of three fill more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from lcv.errors import ArgumentError, LcvError
from lcv.inner_product import Elliptical, Riemannian, Rotation
from lcv.train.batches import TrainBatch, make_source
from lcv.train.config import TrainConfig
from lcv.train.distributed import Processes, check_device, join, leave
from lcv.train.kept import Kept
from lcv.train.log import Listener
from lcv.train.loop import Run
from lcv.train.step import DTYPES
from lcv.train.writer import writer

LANES = 3
SOLVING = (Elliptical, Rotation, Riemannian)
"""Inner products that ask the device's linear solver for P."""

Pace = Callable[[int, float], None]
"""Takes the steps done, and the seconds a step of all runs took since the last time."""


@dataclass(frozen=True)
class Ended:
    """How a run ended: its network and the steps that are done and saved, or why it failed."""

    model: nn.Module | None
    steps: int
    error: LcvError | None = None


def run_together(
    configs: Sequence[TrainConfig],
    device: str | None = None,
    listeners: Sequence[tuple[Listener, ...]] = (),
    stop: Callable[[], bool] = lambda: False,
    pace: Pace = lambda step, seconds: None,
    kept: Kept | None = None,
) -> list[Ended]:
    """Train all of them, each begun or resumed from its own folder; how each ended, in order.

    configs:   alike in all that decides which batches come, and in the number of steps
    listeners: those of each run
    stop:      asked before every step; when it says so, all runs save and leave
    pace:      told how fast it goes, whenever the log is written
    kept:      validation pairs, shared with whoever has it
    One that fails (its loss diverges) leaves the others alone.
    """
    _check_alike(configs)
    processes = join(device)
    if processes.world > 1:
        raise ArgumentError("runs side by side share one process; start them without torchrun")
    for config in configs:
        check_device(config, processes.device)
    with ExitStack() as writers:
        own = listeners or [()] * len(configs)
        group = _Group(configs, processes, own, kept or Kept(), writers)
        try:
            return group.go(stop, pace)
        finally:
            leave()


def _check_alike(configs: Sequence[TrainConfig]) -> None:
    if not configs:
        raise ArgumentError("run_together: there is no run, wanted at least one")
    alike = (
        "data",
        "seed",
        "batch",
        "accumulate",
        "precision",
        "steps",
        "first_step",
        "validation",
    )
    for name in alike:
        values = [getattr(config, name) for config in configs]
        other = next((value for value in values if value != values[0]), None)
        if other is not None:
            raise ArgumentError(
                f"run_together: {name} is {values[0]!r} in one run and {other!r} in another; runs "
                f"side by side meet the same batches"
            )


class _Group:
    def __init__(
        self,
        configs: Sequence[TrainConfig],
        processes: Processes,
        listeners: Sequence[tuple[Listener, ...]],
        kept: Kept,
        writers: ExitStack,
    ) -> None:
        self.configs, self.last, self.device = configs, configs[0].steps, processes.device
        self.source = make_source(configs[0], processes, DTYPES[configs[0].precision])
        self.ended: dict[int, Ended] = {}
        self.runs: dict[int, Run] = {}
        for i, config in enumerate(configs):
            try:
                own = listeners[i]
                writers.enter_context(writer(config.folder, processes))
                self.runs[i] = Run(config, processes, "auto", own, self.source, kept)
            except LcvError as error:
                self.ended[i] = Ended(None, 0, error)
        lanes = [_Lane(self.device) for _ in range(min(LANES, len(configs)))]
        solving = [_solves(run.model) for run in self.runs.values()]
        places = share_lanes(solving, len(lanes))
        self.lanes = {i: lanes[place] for i, place in zip(self.runs, places, strict=True)}

    def go(self, stop: Callable[[], bool], pace: Pace) -> list[Ended]:
        step = min((run.position.step for run in self.runs.values()), default=self.last)
        batches = self.source.batches(step)
        since, began = step, time.perf_counter()
        for run in self.runs.values():
            run.begin()
        while self.runs and step < self.last and not stop():
            try:
                batch = next(batches)
            except LcvError as error:  # a file that cannot be read is missed by all
                self._each(partial(_save_and_raise, error=error))
                break
            # A kill between two saves leaves runs a save apart: those ahead wait for the others.
            moved = [i for i, run in self.runs.items() if run.position.step == step]
            for i in moved:
                self.lanes[i].take(self.runs[i], batch)
            step += 1
            due = [i for i in moved if self.runs[i].is_due(self.last)]
            if due:
                self._meet()
                self._wait()
                pace(step, (time.perf_counter() - began) / (step - since))
                self._each(lambda run: run.attend(self.last), due)
                since, began = step, time.perf_counter()
        self._meet()
        self._each(lambda run: run.finish())
        done = {i: Ended(run.result, run.position.step) for i, run in self.runs.items()}
        self.ended |= done
        return [self.ended[i] for i in range(len(self.configs))]

    def _meet(self) -> None:
        """The stream that logs, validates and saves waits for all lanes."""
        for lane in set(self.lanes.values()):
            lane.join()

    def _wait(self) -> None:
        """Until the device has done what it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _each(self, job: Callable[[Run], None], chosen: Sequence[int] | None = None) -> None:
        """A job for every run, or the chosen ones; one that fails ends, and the others go on."""
        for i in list(self.runs) if chosen is None else chosen:
            try:
                job(self.runs[i])
            except LcvError as error:
                steps = self.runs.pop(i).position.step
                self.ended[i] = Ended(None, steps, error)


class _Lane:
    """Where runs take their steps one after the other: a stream of the GPU, or the CPU itself."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None

    def take(self, run: Run, batch: TrainBatch) -> None:
        if self.stream is None:
            run.take(batch)
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            run.take(batch)
        batch.hold_for(self.stream)

    def join(self) -> None:
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)


def share_lanes(solving: Sequence[bool], lanes: int) -> list[int]:
    """Which lane each run goes along: all that solve along the first, the others where few do.

    What a solver keeps for itself on the device is not ours to give out, a set for each network;
    along one lane two solutions never meet.
    """
    load = [sum(solving), *[0] * (lanes - 1)]
    places = []
    for solves in solving:
        place = 0 if solves else load.index(min(load))
        load[place] += not solves
        places.append(place)
    return places


def _solves(model: nn.Module) -> bool:
    return any(isinstance(module, SOLVING) for module in model.modules())


def _save_and_raise(run: Run, error: LcvError) -> None:
    run.save()
    raise error

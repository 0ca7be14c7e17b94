"""A training run as a process of its own, for tests that kill it or start it twice.

    python processes.py CONFIG.json [--mark FILE] [--slow SECONDS] [--die FILE] [--stop STEP]
                        [--poison INDEX] [--began FILE] [--pairs COUNT] [--twice]

--mark: while a checkpoint is being flushed to the disk, FILE exists; for SECONDS, if given.
--die: the second process dies once, in the middle of the run, leaving FILE.
--stop: the second process is told to stop (SIGTERM) when it begins this step.
--poison: the pair of this index has a NaN.
--began: FILE exists from the first step on.
--pairs: validate on so many procedural pairs.
--twice: leave after the first step, and run again in the same processes.

Under torchrun it fails if a thread of the process group is alive after the run: at the end of the
interpreter such a thread aborts the process, now and then.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

from lcv.recipes.stored import config_from
from lcv.train import run, validate
from lcv.train.batches import Procedural, TrainBatch
from lcv.train.step import Step


def slow_and_marked(mark: Path, seconds: float) -> None:
    """Make every flush last a moment, and tell when it does."""
    flush = os.fsync

    def fsync(handle: int) -> None:
        mark.touch()
        time.sleep(seconds)
        flush(handle)
        mark.unlink(missing_ok=True)

    os.fsync = fsync


def mortal(mark: Path) -> None:
    """Kill the second process at its sixth step, unless that has happened before."""
    step = Step.__call__

    def call(self: Step, batch: TrainBatch, number: int) -> None:
        if number == 5 and os.environ.get("RANK") == "1" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        step(self, batch, number)

    Step.__call__ = call


def stopped(at: int) -> None:
    """Tell the second process to stop as it begins a step."""
    step = Step.__call__

    def call(self: Step, batch: TrainBatch, number: int) -> None:
        if number == at and os.environ.get("RANK") == "1":
            os.kill(os.getpid(), signal.SIGTERM)
        step(self, batch, number)

    Step.__call__ = call


def told(began: Path) -> None:
    """Tell that steps are being taken."""
    step = Step.__call__

    def call(self: Step, batch: TrainBatch, number: int) -> None:
        began.touch()
        step(self, batch, number)

    Step.__call__ = call


def poisoned(poison: int) -> None:
    """Plant a NaN in the second frame of one pair."""
    make = Procedural._make

    def made(self: Procedural, indices: list[int]) -> TrainBatch:
        batch = make(self, indices)
        for position, index in enumerate(indices):
            if index == poison:
                batch.image2[position, 1, 3, 4] = torch.nan
        return batch

    Procedural._make = made


def threads_of_the_group() -> list[str]:
    """Names of threads that gloo has started and not ended (Linux alone tells)."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


def main(words: list[str] | None = None) -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--mark", type=Path)
    parser.add_argument("--slow", type=float, default=0.15)
    parser.add_argument("--die", type=Path)
    parser.add_argument("--stop", type=int)
    parser.add_argument("--poison", type=int)
    parser.add_argument("--began", type=Path)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--twice", action="store_true")
    chosen = parser.parse_args(words)
    if chosen.mark is not None:
        slow_and_marked(chosen.mark, chosen.slow)
    if chosen.die is not None:
        mortal(chosen.die)
    if chosen.stop is not None:
        stopped(chosen.stop)
    if chosen.poison is not None:
        poisoned(chosen.poison)
    if chosen.began is not None:
        told(chosen.began)
    if chosen.pairs is not None:
        validate.PAIRS = chosen.pairs
    try:
        config = config_from(json.loads(chosen.config.read_text()))
        if chosen.twice:
            run(config, resume="auto", device="cpu", until=1)
        run(config, resume="auto", device="cpu")
    finally:
        if left := threads_of_the_group():
            sys.exit(f"threads outlive the run: {', '.join(left)}")


if __name__ == "__main__":
    main()

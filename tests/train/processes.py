"""A training run as a process of its own, for tests that kill it or start it twice.

    python processes.py CONFIG.json [--mark FILE] [--die FILE]

--mark: while a checkpoint is being flushed to the disk, FILE exists.
--die: the second process dies once, in the middle of the run, leaving FILE.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

from lcv.recipes.stored import config_from
from lcv.train import run
from lcv.train.batches import TrainBatch
from lcv.train.step import Step


def slow_and_marked(mark: Path) -> None:
    """Make every flush last a moment, and tell when it does."""
    flush = os.fsync

    def fsync(handle: int) -> None:
        mark.touch()
        time.sleep(0.15)
        flush(handle)
        mark.unlink(missing_ok=True)

    os.fsync = fsync


def mortal(mark: Path) -> None:
    """Kill the second process at its tenth step, unless that has happened before."""
    step = Step.__call__

    def call(self: Step, batch: TrainBatch, number: int) -> None:
        if number == 10 and os.environ.get("RANK") == "1" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        step(self, batch, number)

    Step.__call__ = call


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "--die" in sys.argv:
        mortal(Path(sys.argv[sys.argv.index("--die") + 1]))
    if "--mark" in sys.argv:
        slow_and_marked(Path(sys.argv[sys.argv.index("--mark") + 1]))
    config = config_from(json.loads(Path(sys.argv[1]).read_text()))
    run(config, resume="auto", device="cpu")

"""A run on the terminal: a bar with step, loss, EPE, speed, time left and memory; lines elsewhere.

Used by `lcv train` alone; `lcv.train.run` does without it.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lcv.train.config import TrainConfig
from lcv.words import one_line


class Terminal:
    """A listener and a context: `with Terminal(config) as show: run(config, listeners=(show,))`."""

    def __init__(self, config: TrainConfig, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.steps = config.steps
        self.task = self.progress.add_task(one_line(config.folder), total=config.steps, numbers="")

    def __enter__(self) -> Terminal:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def __call__(self, entry: dict[str, Any]) -> None:
        kind, step = entry["kind"], entry["step"]
        if kind == "train":
            numbers = train_line(entry)
            self.progress.update(self.task, completed=step, numbers=numbers)
            if not self.console.is_terminal:
                self._say(f"step {step}/{self.steps}  {numbers}")
        elif kind == "validation":
            named = (f"{name} {value:.3f}" for name, value in entry.items() if "/" in name)
            self._say(f"step {step}  validation  {'  '.join(named)}")
        elif kind == "note":
            self._say(str(entry["text"]))

    def _say(self, line: str) -> None:
        # Plain text: a bracket in a name is no markup, and a log file wants whole lines.
        self.console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)


def train_line(entry: dict[str, Any]) -> str:
    """The numbers of a log entry that one wants to see at a glance."""
    memory = entry.get("memory_gib", resident_gib())
    parts = [
        f"loss {entry['loss']:.4g}",
        *([f"EPE {entry['epe']:.3f}"] if "epe" in entry else []),  # without truth there is none
        f"{entry['pairs_per_second']:.1f} pairs/s",
        f"{memory:.2f} GiB",
    ]
    return "  ".join(parts)


def resident_gib() -> float:
    """The most memory that this process has held, for runs without a GPU."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**30 if sys.platform == "darwin" else 2**20)

"""A prediction on the terminal: a bar with pairs, pairs a second and time left; elsewhere a line now
and then.
"""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from lcv.predict.job import Listener
from lcv.words import counted, one_line

LINE_SECONDS = 30.0


class Terminal(Listener):
    """Shows a job's progress, in a `with` block; with `quiet` nothing.

    notes: said once, before the first pair or clip; not at all if everything was done before
    """

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self.quiet = quiet
        self.notes: list[str] = []
        self.console = console or Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            console=self.console,
            transient=True,
        )
        self.task: TaskID | None = None
        self.left: int | None = None
        # When the last pairs were computed, for a speed that follows what is going on now.
        self.times: deque[tuple[float, int]] = deque(maxlen=20)
        self.last_line = time.monotonic()

    def __enter__(self) -> Terminal:
        if self.console.is_terminal and not self.quiet:
            self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.progress.live.is_started:
            self.progress.stop()

    def say(self, text: str) -> None:
        if not self.quiet:
            # Plain text: a bracket in a name is no markup, and a log file wants whole lines.
            self.console.print(one_line(text), markup=False, highlight=False, soft_wrap=True)

    def begin(self, name: str, pairs: int | None) -> None:
        while self.notes:
            self.say(self.notes.pop(0))
        if self.task is not None:
            self.progress.remove_task(self.task)
        self.task = self.progress.add_task(one_line(name), total=pairs, speed="")
        self.name, self.total, self.left = name, pairs, pairs
        self.times.clear()

    def advance(self, pairs: int = 1, computed: bool = True) -> None:
        if self.left is not None:
            self.left = max(0, self.left - pairs)
        if computed and pairs:
            self.times.append((time.monotonic(), pairs))
        if self.task is not None:
            self.progress.update(self.task, advance=pairs, speed=self.speed())
        is_due = time.monotonic() - self.last_line > LINE_SECONDS and self.left != 0
        if is_due and not self.console.is_terminal:
            self.last_line = time.monotonic()
            left = "" if self.left is None else f"{self.left} of {counted(self.total or 0, 'pair')}"
            left += " left" * bool(left)
            self.say(", ".join(part for part in (self.name, left, self.speed()) if part))

    def speed(self) -> str:
        """As in "1.8 pairs/s, 2 min left"."""
        if len(self.times) < 2 or self.times[0][0] == self.times[-1][0]:
            return ""
        (start, first), (end, _) = self.times[0], self.times[-1]
        seconds = (end - start) / (sum(pairs for _, pairs in self.times) - first)
        rate = f"{1 / seconds:.1f} pairs/s" if seconds < 1 else f"{seconds:.1f} s a pair"
        return rate if not self.left else f"{rate}, {duration(seconds * self.left)} left"


def duration(seconds: float) -> str:
    """As people say it: 40 s, 3 min, 2 h 5 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"

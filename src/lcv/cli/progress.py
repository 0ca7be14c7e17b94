"""How far a verb is: a bar on a terminal, on the standard error so that results can be piped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lcv.words import one_line

Tell = Callable[[str, int, int], None]
"""Called with what is done, how many of it, and of how many."""


@contextmanager
def bars(label: str = "", *, wanted: bool = True) -> Iterator[Tell | None]:
    """A bar for each thing that is told of; None where there is no terminal to draw on."""
    if not wanted or not _is_terminal():
        yield None
        return
    with _drawn() as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                name = one_line(f"{label}: {what}" if label else what)
                tasks[what] = bar.add_task(name, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


@contextmanager
def one_bar() -> Iterator[Tell | None]:
    """One bar, which says what is at work now; None where there is no terminal."""
    if not _is_terminal():
        yield None
        return
    with _drawn() as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(
            task, description=one_line(what), completed=done, total=total
        )


@contextmanager
def one_bar_or_lines(every: int = 1) -> Iterator[Tell]:
    """For work of hours, whose log is read later: where no bar can be drawn, a line now and then."""
    with one_bar() as tell:
        if tell is not None:
            yield tell
            return
        start = time.monotonic()

        def say(what: str, done: int, total: int) -> None:
            if done % every == 0 or done == total:
                print(
                    f"{done}/{total}  {time.monotonic() - start:.0f} s  {one_line(what)}",
                    file=sys.stderr,
                )

        yield say


@contextmanager
def says_how_to_resume(*, wanted: bool = True, overwrite: bool = False) -> Iterator[None]:
    """Where Ctrl-C ends the block, `lcv` says how to go on. overwrite: the command has --overwrite"""
    try:
        yield
    except KeyboardInterrupt:
        if wanted:
            again = same_command(overwrite)
            raise KeyboardInterrupt(f"finished work is kept; to continue, run {again}") from None
        raise


def same_command(overwrite: bool) -> str:
    """What to run to resume. overwrite: the command has --overwrite"""
    return "the same command without --overwrite" if overwrite else "the same command"


def _is_terminal() -> bool:
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return False
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


def _drawn() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)

"""SIGTERM and Ctrl-C as words to a run, which then saves and leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that fills when SIGTERM or Ctrl-C arrives, so that the run can save and leave.

    The first Ctrl-C is answered at once, in words. A second one is a KeyboardInterrupt, but not
    under torchrun, which passes on to its processes the Ctrl-C that the terminal has sent to them.
    """
    arrived: list[int] = []

    def note(number: int, _: object) -> None:
        if arrived and number == signal.SIGINT and "TORCHELASTIC_RUN_ID" not in os.environ:
            raise KeyboardInterrupt
        if not arrived and number == signal.SIGINT:
            # Not by print, which may have been at work when the signal came.
            os.write(2, b"stopping as soon as all is saved; Ctrl-C again stops at once\n")
        arrived.append(number)

    old = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError):  # not the main thread: whoever runs us handles signals
            old[number] = signal.signal(number, note)
    try:
        yield arrived
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)

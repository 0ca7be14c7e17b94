"""SIGTERM and Ctrl-C as words to a run, which then saves and leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that fills when SIGTERM or Ctrl-C arrives, so that the run can save and leave.

    A Ctrl-C after that is a KeyboardInterrupt, at once. Not under torchrun: that passes on to its
    processes the Ctrl-C which the terminal has sent to them already.
    """
    arrived: list[int] = []

    def note(number: int, _: object) -> None:
        if arrived and number == signal.SIGINT and "TORCHELASTIC_RUN_ID" not in os.environ:
            raise KeyboardInterrupt
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

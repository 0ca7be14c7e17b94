"""Background threads: items prepared ahead of their turn, and tasks run in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

T = TypeVar("T")


def cores() -> int:
    """The processor's cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def prepared(
    items: Iterable[T], prepare: Callable[[ThreadPoolExecutor, T], T], ahead: int
) -> Iterator[T]:
    """The same items in order, each prepared by `prepare` when it is `ahead` places from its turn.

    `prepare` hands its work to the pool, which has as many threads, and returns at once.
    """
    waiting: deque[T] = deque()
    pool = ThreadPoolExecutor(ahead)
    try:
        for item in items:
            waiting.append(prepare(pool, item))
            if len(waiting) > ahead:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        pool.shutdown(cancel_futures=True)


class Behind:
    """Does what it is given in a thread of its own, in order, up to the first error.

    The error is raised in the caller. limit: how much may be given and not yet done; the caller waits
    if there is more
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._has_failed = False
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def do(self, work: Callable[[], None]) -> None:
        self.join(self.limit - 1)
        self._waiting.append(self._pool.submit(self._run, work))

    def join(self, left: int = 0) -> None:
        """Wait until no more than this is left to do."""
        while len(self._waiting) > left or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def _run(self, work: Callable[[], None]) -> None:
        if not self._has_failed:
            try:
                work()
            except BaseException:
                self._has_failed = True
                raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown()  # waits for what was given, whatever ended the block
        if kind is None or issubclass(kind, Exception):
            self.join()  # its errors came first, and are raised first

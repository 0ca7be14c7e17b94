"""CUDA's streams and graphs played on the host: what is recorded is run, and a replay does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch


class Stream:
    """A stream that notes whom it waits for."""

    def __init__(self, name: str, events: list[str]) -> None:
        self.name, self.events = name, events

    def wait_stream(self, other: Stream) -> None:
        self.events.append(f"{self.name} waits for {other.name}")

    def wait_event(self, event: str) -> None:
        self.events.append(f"{self.name} waits for {event}")

    def record_event(self) -> str:
        self.events.append(f"{self.name} records")
        return f"an event of {self.name}"


def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in its order: on the stream "main", that of the caller, and on a new one, "side"."""
    events: list[str] = []

    class Graph:
        def replay(self) -> None:
            events.append("replay")

    @contextmanager
    def within(name: str) -> Iterator[None]:
        events.append(f"{name} begins")
        yield
        events.append(f"{name} ends")

    def record(graph: Graph, pool: Any = None, stream: Stream | None = None, **more: Any) -> Any:
        assert isinstance(graph, Graph)
        where = [f" in {pool}"] if pool is not None else []
        where += [f" on {stream.name}"] if stream is not None else []
        return within("".join(["record", *where, *(f" {word}" for word in more.values())]))

    main, side = Stream("main", events), Stream("side", events)
    for name, value in {
        "Stream": lambda device=None: side,
        "current_stream": lambda device=None: main,
        "stream": lambda each: within(each.name),
        "device": lambda device: within(str(device)),
        "graph_pool_handle": lambda: events.append("pool") or "pool",
        "CUDAGraph": Graph,
        "graph": record,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return events

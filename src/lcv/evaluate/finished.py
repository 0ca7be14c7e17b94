"""Pairs that an interrupted run has finished: a line each in a log beside its output.

A line is found again by a run with the same settings, on a pair whose files have the same size and
time. Whatever else the log holds is as if it were not there.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from lcv.errors import FileError
from lcv.evaluate.protocols import Protocol
from lcv.models.types import tensor_of
from lcv.provenance import state_sha256
from lcv.version import __version__


class Finished:
    """The log of an output.

    settings: all that decides what is found of a pair
    rank:     of this process; each writes a file of its own
    """

    def __init__(
        self, output: str | os.PathLike[str], settings: Iterable[Any], rank: int = 0
    ) -> None:
        self.settings = [__version__, *settings]
        self.own = Path(f"{output}.done{rank}.jsonl")
        self._found: dict[str, Any] = {}
        for path in _logs(output):
            for line in path.read_bytes().splitlines():
                try:  # the last line may be torn
                    pair, found = json.loads(line)
                    self._found[str(pair)] = found
                except (ValueError, TypeError, RecursionError):
                    continue

    def get(self, record: Any) -> Any:
        """What was found of a pair; None if it is not finished."""
        return self._found.get(self._key(record))

    def add(self, record: Any, found: Any) -> None:
        """A pair is finished."""
        try:
            with self.own.open("a", encoding="utf-8") as file:
                file.write(json.dumps([self._key(record), found]) + "\n")
        except OSError as error:
            raise FileError(f"{self.own}: writing failed: {error.strerror}") from error

    def _key(self, record: Any) -> str:
        files = record.files() if hasattr(record, "files") else ()
        stats = [(str(path), path.stat()) for path in files if path.exists()]
        known = [(path, found.st_size, found.st_mtime_ns) for path, found in stats]
        said = json.dumps([self.settings, record.dataset, record.name, known], default=str)
        return hashlib.sha256(said.encode()).hexdigest()[:32]


def settings_of(model: nn.Module, protocol: Protocol) -> list[Any]:
    """All that decides the flow of a network under a protocol."""
    spec = getattr(model, "spec", None)
    words = type(model).__name__ if spec is None else spec.as_dict()
    return [words, state_sha256(model), protocol.as_dict(), tensor_of(model).device.type]


def forget(output: str | os.PathLike[str]) -> None:
    """Remove the log: the output is there."""
    for path in _logs(output):
        path.unlink(missing_ok=True)


def _logs(output: str | os.PathLike[str]) -> list[Path]:
    return [Path(name) for name in sorted(glob.glob(f"{glob.escape(str(output))}.done*.jsonl"))]

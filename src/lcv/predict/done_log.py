"""The done log of a job: which outputs are there, and which files each was made from.

Every worker appends to a file of its own, OUT/done/WORKER.jsonl. A line is written after the outputs
that it lists are in place; it has their sizes, and the identity of every file they were made from.
The state of a job is the union of all lines; of two lines on one output, that of the later run
counts. A line that is torn or makes no sense is ignored: its outputs are computed again. A file with a
thousand such lines is read no further.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from lcv.errors import FileError
from lcv.files import SMALL

MOST_STRANGE = 1000  # lines of a file that make no sense


class Identity(NamedTuple):
    """Identifies a file. time: of its last change, in nanoseconds; sha256: "" if it is unreadable"""

    size: int
    time: int
    sha256: str


class Entry(NamedTuple):
    """What the log says of an output. made_from: the files it was made from; stamp: what a clip shows"""

    run: int
    size: int
    made_from: tuple[Identity, ...]
    stamp: str | None


class Files:
    """Sizes, times and hashes of files, cached until `forget`."""

    def __init__(self) -> None:
        self._stats: dict[Path, tuple[int, int] | None] = {}
        self._hashes: dict[Path, str] = {}

    def identity(self, path: Path) -> Identity:
        """To be taken before the file is read: then a change in between is noticed later."""
        return Identity(*(self._stat(path) or (0, 0)), self._hash(path))

    def is_unchanged(self, path: Path, known: Identity) -> bool:
        """By size and time; where the time differs, by content."""
        now = self._stat(path)
        if now is None or now[0] != known.size:
            return False
        if now[1] == known.time:
            self._hashes.setdefault(path, known.sha256)
        return self._hash(path) == known.sha256

    def forget(self, path: Path) -> None:
        """Drop what is cached about a file, since it has been written."""
        self._stats.pop(path, None)
        self._hashes.pop(path, None)

    def _stat(self, path: Path) -> tuple[int, int] | None:
        if path not in self._stats:
            try:
                found = path.stat()
                self._stats[path] = found.st_size, found.st_mtime_ns
            except (OSError, ValueError):
                self._stats[path] = None
        return self._stats[path]

    def _hash(self, path: Path) -> str:
        if path not in self._hashes:
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                    self._hashes.setdefault(path, found)  # another thread may have been first
            except (OSError, ValueError):
                self._hashes[path] = ""
        return self._hashes[path]


class DoneLog:
    """The log as one worker sees it.

    folder:  OUT/done
    run:     a number above that of all runs before
    entries: by the output's path inside OUT
    pairs:   the files that a pair was last made from, by sequence and name
    """

    def __init__(self, folder: Path) -> None:
        worker = f"{platform.node()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"
        self.folder, self.own = folder, folder / f"{worker}.jsonl"
        self.run = 1
        self.entries: dict[str, Entry] = {}
        self.pairs: dict[tuple[str, str], tuple[Identity, ...]] = {}
        self._read_to: dict[Path, int] = {}
        self._strange: Counter[Path] = Counter()  # lines of a file that are not ours

    def read(self) -> None:
        """Read the lines that workers have added since the last call."""
        for path in sorted(self.folder.glob("*.jsonl")):
            if size_of(path) is not None:
                with path.open("rb") as file:
                    file.seek(self._read_to.get(path, 0))
                    # A line without an end is being written, or was when its worker died.
                    while self._strange[path] < MOST_STRANGE:
                        if not (line := file.readline(SMALL)).endswith(b"\n"):
                            break
                        self._strange[path] += not self._take_in(line)
                        self._read_to[path] = file.tell()

    def append(
        self,
        sizes: dict[str, int],
        sequence: str,
        pair: str = "",
        made_from: Iterable[Identity] = (),
        **more: Any,
    ) -> None:
        """A line on outputs that are in place. sizes: by the output's path inside OUT"""
        line = {"run": self.run, "sequence": sequence, "pair": pair, "made_from": [*made_from]}
        text = (json.dumps({**line, **more, "outputs": sizes}) + "\n").encode()
        try:
            with self.own.open("ab") as file:
                file.write(text)
        except OSError as error:
            raise FileError(f"{self.own}: writing failed: {error}") from error
        self._take_in(text)

    def _take_in(self, text: bytes) -> bool:
        """Whether the line is one of ours."""
        try:
            line = json.loads(text)
            run = min(int(line["run"]), 2**53)  # a longer number could not be written again
            pair = str(line["sequence"]), str(line["pair"])
            made_from = tuple(Identity(int(a), int(b), str(c)) for a, b, c in line["made_from"])
            new = {
                str(name): Entry(run, int(size), made_from, line.get("clip"))
                for name, size in line["outputs"].items()
            }
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            return False
        for name, entry in new.items():
            if name not in self.entries or self.entries[name].run <= run:
                self.entries[name] = entry
                self.pairs[pair] = made_from
        return True


def size_of(path: Path) -> int | None:
    """The size of an ordinary file; None of a link, or where there is none."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None

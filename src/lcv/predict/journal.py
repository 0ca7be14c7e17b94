"""Which outputs a job has begun to make, told before each appears: nobody else's file passes for one.

A record tells of all pairs of a sequence from the start. Those not made yet are in its `unmade`; those
begun since are in logs beside it, one for each command and shard, to which a line costs little:

OUT/made/SEQUENCE.COMMAND.I-N.log

    ["+", "000003", ["flow/*.flo"]]      is about to be written
    ["-", "000004", ["flow/*.flo"]]      could not be made
    ["~", "000003", ["flow/*.flo"]]      is not there after all, so that its place is anyone's

Of a name, the last word counts. Once nothing is left that any shard could make, the logs go into the
record and disappear; until then they also stay between shards. A log that is empty says that its shard
has begun.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from lcv.errors import FileError
from lcv.files import make_folder, temporary_stem
from lcv.predict.shards import Shard

# Bytes of a name that a command, a shard and an ending are added to.
LONGEST = 200
_LOG = re.compile(r"\.([0-9a-f]{8})\.\d+-\d+\.log")

# By output, names of pairs; a clip is called by its own name.
Names = dict[str, set[str]]


class Log(NamedTuple):
    """What a log says. made: or about to be; failed: what could not be made"""

    path: Path
    command: str
    made: Names
    failed: Names

    @property
    def pairs(self) -> set[str]:
        return set().union(*self.made.values(), *self.failed.values())


class Journal:
    """The logs beside the record `path`, of which one is written by this command and shard."""

    def __init__(self, path: Path, command: str, shard: Shard) -> None:
        self.command = command
        self.is_alone = shard.is_all
        name = path.name.removesuffix(".json")
        # What is added to it is longer than what is added to the record's name.
        fits = len(os.fsencode(name)) <= LONGEST
        self._stem = path.with_name(name if fits else temporary_stem(name))
        self._ending = f"-{shard.count}.log"
        self.own = self._stem.with_name(f"{self._stem.name}.{command}.{shard.index}{self._ending}")

    def logs(self) -> list[Log]:
        """All that there are, as they are now."""
        beside = self._stem.parent.glob(f"{glob.escape(self._stem.name)}.*.log")
        matches = [(path, _LOG.fullmatch(path.name[len(self._stem.name) :])) for path in beside]
        found = [_read(path, match[1]) for path, match in sorted(matches) if match is not None]
        return [log for log in found if log is not None]

    def others(self) -> list[Log]:
        """The logs that are not of this command, or of shards of another size."""
        return [
            log
            for log in self.logs()
            if log.command != self.command or not log.path.name.endswith(self._ending)
        ]

    def begin(self) -> None:
        """An empty log of this shard."""
        self._write("w", "")

    def begin_unless_begun(self) -> None:
        if not self.own.exists():
            self.begin()

    def tell(self, sign: str, name: str, outputs: Iterable[str]) -> None:
        """Add a line. A line that a full disk has cut ends where the next begins."""
        self._write("a", _line(sign, name, outputs))

    def withdraw(self, names: Collection[str], outputs: Collection[str]) -> None:
        """Whichever log says that these were made, or begun: they are not there after all."""
        for log in self.logs():
            for name in sorted(names):
                told = [each for each in outputs if name in log.made.get(each, ())]
                if told:
                    _write(log.path, "a", _line("~", name, told))

    def drop(self, names: Collection[str], with_empty: bool) -> None:
        """Remove the logs of this command, and those that tell of no other pairs than `names`.

        with_empty: those too that tell of none
        """
        for log in self.logs():
            is_of_them = log.pairs <= {*names} and (with_empty or bool(log.pairs))
            if log.command == self.command or is_of_them:
                log.path.unlink(missing_ok=True)

    def drop_all(self) -> None:
        for log in self.logs():
            log.path.unlink(missing_ok=True)

    def _write(self, mode: str, text: str) -> None:
        make_folder(self.own.parent)
        _write(self.own, mode, text)


def command_of(*what: object) -> str:
    """A short name for a command. what: all that decides which outputs it makes, but for its input"""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]


def made(logs: Iterable[Log]) -> Names:
    """All that was made, or begun, according to logs."""
    return _together(log.made for log in logs)


def failed(logs: Iterable[Log]) -> Names:
    """All that could not be made, according to logs."""
    return _together(log.failed for log in logs)


def without(unmade: dict[str, list[str]], names: Names) -> dict[str, list[str]]:
    """What of `unmade` is left."""
    left = {output: sorted({*all_} - names.get(output, set())) for output, all_ in unmade.items()}
    return {output: all_ for output, all_ in left.items() if all_}


def _together(parts: Iterable[Names]) -> Names:
    found: Names = {}
    for part in parts:
        for output, names in part.items():
            found.setdefault(output, set()).update(names)
    return found


def _read(path: Path, command: str) -> Log | None:
    """A log; None where another process has just removed it. Lines that are cut are none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    made_: Names = {}
    failed_: Names = {}
    for line in lines:
        try:
            sign, name, outputs = json.loads(line)
            for output in outputs:
                for said, own in ((made_, "+"), (failed_, "-")):
                    names = said.setdefault(output, set())
                    names.add(name) if sign == own else names.discard(name)
        except (ValueError, TypeError, RecursionError):
            continue
    return Log(path, command, made_, failed_)


def _line(sign: str, name: str, outputs: Iterable[str]) -> str:
    return "\n" + json.dumps([sign, name, sorted(outputs)])


def _write(path: Path, mode: str, text: str) -> None:
    try:
        with path.open(mode, encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise FileError(f"{path}: cannot be written to: {error.strerror}") from None

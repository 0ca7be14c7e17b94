"""Which outputs a job has begun to make, told before each appears: nobody else's file passes for one.

A record tells of all pairs of a sequence from the start. Those not made yet are in its `unmade`; those
begun since are in logs beside it, one for each command and shard, to which a line costs little:

OUT/made/SEQUENCE.COMMAND.I-N.log

    anew                                 was begun with --overwrite; "new": there was nothing; else "more"
    ["+", "000003", ["flow/*.flo"]]      is about to be written
    ["-", "000004", ["flow/*.flo"]]      could not be made
    ["=", "", []]                        the shard has come to its end

Once all shards of a command have come to their end, its logs go into the record and disappear. Until
then they also tell a shard that begins anew that others have done so before it.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from collections.abc import Collection, Iterable
from collections.abc import Sequence as Many
from pathlib import Path
from typing import NamedTuple

from lcv.errors import FileError
from lcv.files import make_folder
from lcv.predict.shards import Shard

ANEW, NEW, MORE = "anew", "new", "more"
END = ["=", "", []]
_LOG = re.compile(r"\.([0-9a-f]{8})\.\d+-\d+\.log")

# By output, names of pairs; a clip is called by its own name.
Names = dict[str, set[str]]


class Log(NamedTuple):
    """What a log says. begun: its first word; made: or about to be; failed: what could not be made"""

    path: Path
    command: str
    begun: str
    made: Names
    failed: Names
    is_ended: bool

    @property
    def pairs(self) -> set[str]:
        return set().union(*self.made.values(), *self.failed.values())


class Journal:
    """The logs beside the record `path`, of which one is written by this command and shard."""

    def __init__(self, path: Path, command: str, shard: Shard) -> None:
        self.command, self._count = command, shard.count
        self.is_alone = shard.is_all
        self._stem = path.with_name(path.name.removesuffix(".json"))
        self.own = self._beside(f".{command}.{shard.index}-{shard.count}.log")

    def logs(self) -> list[Log]:
        """All that there are, as they are now."""
        beside = self._stem.parent.glob(f"{glob.escape(self._stem.name)}.*.log")
        matches = [(path, _LOG.fullmatch(path.name[len(self._stem.name) :])) for path in beside]
        found = [_read(path, match[1]) for path, match in sorted(matches) if match is not None]
        return [log for log in found if log is not None]

    def goes_on(self) -> bool:
        """Whether this command has begun anew before, here or in another shard, and not ended."""
        return any(log.begun in (ANEW, NEW) for log in self.of_command())

    def of_command(self) -> list[Log]:
        """The logs of all shards of this command."""
        return [log for log in self.logs() if log.command == self.command]

    def is_ended(self) -> bool:
        """Whether all shards that have begun anew, into as many as now, have come to their end.

        A shard that is killed and begins anew once more must find that the others did so before.
        """
        logs = self.of_command()
        beside = [log for log in logs if log.path.name.endswith(f"-{self._count}.log")]
        return all(log.begun != ANEW for log in logs) or all(log.is_ended for log in beside)

    def begin(self, how: str) -> None:
        """An empty log of this shard. how: ANEW, NEW or MORE"""
        self._write("w", how)

    def begin_unless_begun(self, how: str | None = None) -> None:
        """None: as the other shards have"""
        if not self.own.exists():
            self.begin(how or (NEW if self.goes_on() else MORE))

    def end(self) -> None:
        self._add(END)

    def tell(self, sign: str, name: str, outputs: Iterable[str]) -> None:
        """Add a line. A line that a full disk has cut ends where the next begins."""
        self._add([sign, name, sorted(outputs)])

    def drop(self, names: Collection[str] | None) -> None:
        """Remove the logs of this command, and those that tell of no other pairs; None: all."""
        for log in self.logs():
            if names is None or log.command == self.command or log.pairs <= set(names):
                log.path.unlink(missing_ok=True)

    def drop_own(self) -> None:
        self.own.unlink(missing_ok=True)

    def _add(self, line: Many[Many[str]]) -> None:
        self.begin_unless_begun()
        self._write("a", "\n" + json.dumps(line))

    def _beside(self, ending: str) -> Path:
        return self._stem.with_name(f"{self._stem.name}{ending}")

    def _write(self, mode: str, text: str) -> None:
        make_folder(self.own.parent)
        try:
            with self.own.open(mode, encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise FileError(f"{self.own}: cannot be written to: {error.strerror}") from None


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
        first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    said: dict[str, Names] = {"+": {}, "-": {}}
    for line in lines:
        try:
            sign, name, outputs = json.loads(line)
            for output in outputs:
                said[sign].setdefault(output, set()).add(name)
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    is_ended = bool(lines) and lines[-1] == json.dumps(END)
    return Log(path, command, first, said["+"], said["-"], is_ended)

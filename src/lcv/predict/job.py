"""What a job is, what comes of it, and who is told on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lcv.errors import LcvError
from lcv.predict.inputs import FilmFile
from lcv.predict.outputs import Output
from lcv.predict.pairs import Wanted
from lcv.predict.shards import Shard
from lcv.predict.sources import FrameFiles, Live

NOTHING_MORE = Wanted()
ALL = Shard()
MOST_NOTES = 4


class Listener(Protocol):
    """Whoever shows a job's progress."""

    def say(self, text: str) -> None:
        """A sentence that matters now."""

    def begin(self, name: str, pairs: int | None) -> None:
        """A sequence begins; so many pairs of it are this process's, None if nobody knows."""

    def advance(self, pairs: int, computed: bool) -> None:
        """So many pairs are behind us: computed just now, or there already or impossible."""


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None: ...

    def begin(self, name: str, pairs: int | None) -> None: ...

    def advance(self, pairs: int, computed: bool) -> None: ...


@dataclass(frozen=True)
class Job:
    """What is to be done.

    root:       the folder of the outputs; None where a clip is all that is wanted
    clip:       a film for every sequence: True, or the path of the only one
    arrows:     whether the film's frames carry arrows
    scale:      of pictures, in pixels; None: see `lcv.predict.scale`
    frames:     at most so many of each sequence, from its start
    """

    sequences: tuple[FrameFiles | Live | FilmFile, ...]
    root: Path | None
    outputs: tuple[Output, ...]
    wanted: Wanted = NOTHING_MORE
    scale: float | None = None
    clip: bool | Path = False
    arrows: bool = False
    warm_start: bool = False
    shard: Shard = ALL
    strict: bool = False
    overwrite: bool = False
    frames: int | None = None


@dataclass
class Summary:
    """What came of it: pairs computed, pairs that were there already, pairs that failed.

    changed:  of those computed, how many had been before, from frames that have changed since
    removed:  old files that had to go: of such pairs, or because all is begun anew
    left:     pairs that an input does not have any more, and how many outputs of each stay
    failures: of frames, pairs and sequences, each with its reason
    scales:   of pictures
    """

    done: int = 0
    there: int = 0
    failed: int = 0
    changed: int = 0
    removed: int = 0
    left: dict[str, int] = field(default_factory=dict)
    failures: list[LcvError] = field(default_factory=list)
    scales: set[float] = field(default_factory=set)
    clips: list[Path] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def add_notes(self, notes: Iterable[str]) -> None:
        """Keep what is to be said of pairs: the first few things, since a film has many pairs."""
        for note in notes:
            known = note in self.notes or len(self.notes) < MOST_NOTES
            self.notes[note if known else "more was noted of other pairs"] += 1

"""A job: its settings, its progress listener and its summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcv.errors import LcvError
from lcv.predict.matching import Wanted
from lcv.predict.outputs import Named, Output
from lcv.predict.predictor import Predictor
from lcv.predict.selection import EVERYTHING, Selection, Shard
from lcv.predict.sources import Sequence
from lcv.provenance import state_sha256
from lcv.version import __version__
from lcv.visual.figures import Known


@dataclass(frozen=True)
class Job:
    """What is to be done.

    place:  the folder of the outputs, or the files of a single pair; None where a clip is all
    clip:   a clip of every sequence: True, or the path of the only one
    arrows: whether the clip's frames carry arrows
    scale:  of pictures, in pixels; None: see `lcv.predict.scale`
    selection: which frames of each sequence
    truth:  the true flow of a single pair
    """

    sequences: tuple[Sequence, ...]
    place: Path | Named | None
    outputs: tuple[Output, ...]
    wanted: Wanted = Wanted()  # noqa: RUF009
    scale: float | None = None
    clip: bool | Path = False
    arrows: bool = False
    warm_start: bool = False
    shard: Shard = Shard()  # noqa: RUF009
    strict: bool = False
    overwrite: bool = False
    selection: Selection = EVERYTHING
    truth: Known | None = None

    def settings(self, predictor: Predictor) -> dict[str, Any]:
        """Everything that decides the numbers in the job's files."""
        return {
            "lcv": __version__,
            "model": predictor.name,
            "source": getattr(getattr(predictor.model, "spec", None), "source", None),
            "weights": state_sha256(predictor.model),
            "iters": predictor.matcher.iters,
            "pad": predictor.matcher.pad,
            "precision": predictor.precision,
            "max_side": predictor.max_side,
            "every": self.selection.every,
            "warm_start": self.warm_start,
            "scale": "auto" if self.scale is None else self.scale,
        }


class Listener:
    """Receives a job's progress; this one ignores it."""

    def say(self, text: str) -> None:
        """A sentence that matters now."""

    def begin(self, name: str, pairs: int | None) -> None:
        """A sequence begins, with this many pairs to do; None if unknown."""

    def advance(self, pairs: int = 1, computed: bool = True) -> None:
        """`pairs` more pairs are finished: computed just now, or impossible."""


@dataclass
class Summary:
    """What a run has done.

    done, there: pairs computed, and pairs that were done already
    failed:      pairs that could not be computed: the sequence's title and the pair's number
    failures:    of frames, pairs and sequences, each with its reason
    notes:       how many pairs carry each note
    """

    done: int = 0
    there: int = 0
    failed: set[tuple[str, int]] = field(default_factory=set)
    failures: dict[str, LcvError] = field(default_factory=dict)
    scales: set[float] = field(default_factory=set)
    clips: list[Path] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, other: Summary) -> None:
        """Count in what another worker did."""
        self.done += other.done
        self.there += other.there
        self.failed |= other.failed
        self.failures |= other.failures
        self.scales |= other.scales
        self.notes += other.notes

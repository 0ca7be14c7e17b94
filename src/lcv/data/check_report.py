"""What `lcv data check` found: as numbers, as JSON and as text."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lcv.data.inspection import TruthFacts
from lcv.data.truth_test import Duel
from lcv.words import counted, one_line

SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: the file or the dataset, and the reason."""

    where: str
    reason: str


@dataclass
class PartReport:
    """One part of a dataset in numbers; filled while it is being checked."""

    label: str
    pairs: int
    expected: int | None = None
    frames: int = 0
    sizes: Counter[str] = field(default_factory=Counter)
    depths: Counter[str] = field(default_factory=Counter)
    truths: int = 0
    truth_depths: Counter[str] = field(default_factory=Counter)
    known: int = 0
    pixels: int = 0
    low: tuple[float, float] = (math.inf, math.inf)
    high: tuple[float, float] = (-math.inf, -math.inf)
    largest: float = 0.0
    outliers: list[str] = field(default_factory=list)
    frames_without_truth: int = 0
    pairs_tested: int = 0
    truth_test: dict[str, Duel] = field(default_factory=dict)
    suspicious: list[str] = field(default_factory=list)

    def add_truth(self, fact: TruthFacts) -> None:
        """Count a flow, and note it as an outlier if nothing of it is known or it leaps too far."""
        self.truths += 1
        self.truth_depths[fact.depth] += 1
        self.pixels += fact.pixels
        self.known += fact.known
        if not fact.known:
            self.outliers.append(f"{fact.path}: no pixel has a known flow")
            return
        self.low = (min(self.low[0], fact.low[0]), min(self.low[1], fact.low[1]))
        self.high = (max(self.high[0], fact.high[0]), max(self.high[1], fact.high[1]))
        self.largest = max(self.largest, fact.largest)
        if fact.size is not None and fact.largest > math.hypot(*fact.size):
            self.outliers.append(
                f"{fact.path}: a motion of {fact.largest:.0f} pixels, longer than the diagonal"
            )

    @property
    def completeness(self) -> str:
        """Whether this is all of the dataset."""
        if self.expected is None:
            return "no known total"
        if self.pairs == self.expected:
            return "complete"
        word = "partial" if self.pairs < self.expected else "more than known"
        return f"{word}: a full copy has {self.expected:,}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "label": self.label,
            "pairs": self.pairs,
            "expected": self.expected,
            "partial": self.expected is not None and self.pairs < self.expected,
            "frames": self.frames,
            "sizes": dict(self.sizes),
            "frame_depths": dict(self.depths),
            "frames_without_truth": self.frames_without_truth,
            "truths": self.truths,
            "truth_depths": dict(self.truth_depths),
            "valid_share": self.known / self.pixels if self.pixels else None,
            "u_range": [self.low[0], self.high[0]] if self.known else None,
            "v_range": [self.low[1], self.high[1]] if self.known else None,
            "largest_motion": self.largest if self.known else None,
            "outliers": self.outliers,
            "pairs_tested": self.pairs_tested,
            "truth_test": {
                rival: {
                    "pixels": duel.pixels,
                    "truth_wins": duel.share if duel.pixels else None,
                    "result": _result(duel),
                }
                for rival, duel in self.truth_test.items()
            },
            "suspicious_pairs": self.suspicious,
        }

    def lines(self) -> list[str]:
        """A few sentences."""
        out = [f"{self.label}: {counted(self.pairs, 'pair')} ({self.completeness})"]
        out.append(f"  frames: {self.frames:,}, {_tally(self.sizes)}, {_tally(self.depths)}")
        if self.frames_without_truth:
            out.append(f"  frames without truth: {self.frames_without_truth:,}")
        if self.truths:
            share = self.known / self.pixels if self.pixels else 0.0
            out.append(
                f"  truth: {self.truths:,} flows, {_tally(self.truth_depths)}, {share:.1%} valid"
            )
        if self.known:
            out.append(
                f"  range: u {self.low[0]:.2f} to {self.high[0]:.2f}, v {self.low[1]:.2f} to "
                f"{self.high[1]:.2f}, largest motion {self.largest:.2f} pixels"
            )
        out += [f"  outlier: {text}" for text in _shorten(self.outliers)]
        won = [f"{r} {d.share:.1%}" for r, d in self.truth_test.items() if d.decided and not d.lost]
        lost = [f"{r} {d.share:.1%}" for r, d in self.truth_test.items() if d.lost]
        open_ = [f"{r} ({_why(d)})" for r, d in self.truth_test.items() if not d.decided]
        if won:
            out.append(
                f"  truth wins ({counted(self.pairs_tested, 'pair')} tested) against: {', '.join(won)}"
            )
        if lost:
            out.append(f"  truth loses against: {', '.join(lost)}")
        if open_:
            out.append(f"  skipped: {', '.join(open_)}")
        out += [f"  suspicious pair: {text}" for text in _shorten(self.suspicious)]
        return out


@dataclass(frozen=True)
class SurveyReport:
    """One dataset."""

    kind: str
    root: str
    parts: list[PartReport]


@dataclass(frozen=True)
class Report:
    """All of it. Fine if there is no problem."""

    root: str
    surveys: list[SurveyReport]
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "root": self.root,
            "verdict": "fine" if self.fine else "wrong",
            "problems": [{"where": p.where, "reason": p.reason} for p in self.problems],
            "notes": self.notes,
            "datasets": [
                {"kind": s.kind, "root": s.root, "parts": [p.as_dict() for p in s.parts]}
                for s in self.surveys
            ],
        }

    def text(self) -> str:
        """For people; the verdict is the last line."""
        out = []
        for survey in self.surveys:
            out.append(f"{survey.kind} in {survey.root}")
            out += [f"  {line}" for part in survey.parts for line in part.lines()]
        out += [f"note: {note}" for note in self.notes]
        out += [
            f"wrong: {text}" for text in _shorten([f"{p.where}: {p.reason}" for p in self.problems])
        ]
        count = len(self.problems)
        out.append("verdict: fine" if self.fine else f"verdict: wrong ({count} found)")
        return "\n".join(map(one_line, out))


def _result(duel: Duel) -> str:
    if not duel.decided:
        return f"skipped: {_why(duel)}"
    return "lost" if duel.lost else "won"


def _why(duel: Duel) -> str:
    if duel.pixels:
        return f"differs from the truth at {duel.pixels} pixels only"
    return "leaves the flow as it is"


def _tally(counts: Counter[str]) -> str:
    common = counts.most_common(3)
    if len(counts) == 1:
        return common[0][0]
    more = f" and {len(counts) - 3} other kinds" if len(counts) > 3 else ""
    return ", ".join(f"{name} ({number:,})" for name, number in common) + more if counts else "none"


def _shorten(texts: list[str]) -> list[str]:
    if len(texts) <= SHOWN:
        return texts
    return [*texts[:SHOWN], f"… and {len(texts) - SHOWN:,} more (--json lists all)"]

"""Is the difference between two results more than chance? Pair by pair, with an interval.

Two networks that saw the same pairs are compared on each of them: the spread between pairs, which
is large, then falls out of the difference.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lcv.errors import ArgumentError
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.results import PairResult, Result
from lcv.files import write_text

FORMAT = "lcv comparison 1"
LEVEL = 0.95
DEFAULT_METRICS = ("epe", "fl", "wauc")
_CHUNK = 4_000_000  # numbers drawn at once


def bootstrap_interval(
    differences: Sequence[float] | np.ndarray,
    *,
    seed: int = 0,
    draws: int = 10_000,
    groups: Sequence[Hashable] | None = None,
) -> tuple[float, float]:
    """The 95 % interval of the mean difference, by the percentile bootstrap.

    The n differences are drawn n times with replacement, `draws` times over; the interval spans
    the middle 95 % of the means.
    groups: one label a difference, such as its scene; whole groups are then drawn, since frames
        of one scene are no independent witnesses.
    Facts: the same numbers and seed give the same interval; one difference, or one group, says
    nothing about the spread, so the interval is (−∞, ∞).
    """
    if draws < 1:
        raise ArgumentError(f"bootstrap_interval: draws is {draws}, wanted at least 1")
    values = _checked("bootstrap_interval", differences)
    sums, counts = _by_group(values, groups)
    n = len(sums)
    if n < 2:
        return -math.inf, math.inf
    generator = np.random.default_rng(seed)
    means = []
    for first in range(0, draws, size := max(1, _CHUNK // n)):
        drawn = generator.integers(0, n, (min(size, draws - first), n))
        means.append(sums[drawn].sum(1) / counts[drawn].sum(1))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(means), (tail, 1 - tail))
    return float(low), float(high)


def sign_test(differences: Sequence[float] | np.ndarray) -> float:
    """How likely are signs at least this one-sided, if either sign were as likely? Two-sided.

    Differences of exactly 0 say nothing and are left out; with none left the answer is 1.
    p = min(1, 2 · Σ_{k ≤ m} C(n, k) / 2ⁿ), m the rarer sign's number; exact.
    """
    values = _checked("sign_test", differences)
    above, below = int((values > 0).sum()), int((values < 0).sum())
    n, rarer = above + below, min(above, below)
    term, total = 1, 0
    for k in range(rarer + 1):
        total += term
        term = term * (n - k) // (k + 1)
    return min(1.0, 2 * total / 2**n)


def _checked(function: str, differences: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ArgumentError(
            f"{function}: differences have the shape {values.shape}, wanted a list of one or more"
        )
    if not np.isfinite(values).all():
        raise ArgumentError(f"{function}: a difference is not a number; leave such pairs out")
    return values


def _by_group(
    values: np.ndarray, groups: Sequence[Hashable] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts of each group, in the order of first appearance."""
    if groups is None:
        return values, np.ones(len(values))
    if len(groups) != len(values):
        raise ArgumentError(
            f"bootstrap_interval: there are {len(groups)} groups for {len(values)} differences, "
            f"wanted one each"
        )
    places: dict[Hashable, int] = {}
    index = np.array([places.setdefault(group, len(places)) for group in groups])
    return np.bincount(index, values), np.bincount(index).astype(np.float64)


@dataclass(frozen=True)
class Difference:
    """One metric of one dataset, second result minus first, pair by pair.

    first, second: means over the pairs of each pair's own value; mean: their difference
    low, high:     the bootstrap interval of the mean difference; sign_p: of the sign test
    smaller, equal, larger: in how many pairs the second is smaller than the first, and so on
    """

    dataset: str
    metric: str
    unit: str
    pairs: int
    first: float
    second: float
    mean: float
    low: float
    high: float
    sign_p: float
    smaller: int
    equal: int
    larger: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values; an interval without an end has None there, which JSON can hold."""
        return {k: None if v in (math.inf, -math.inf) else v for k, v in asdict(self).items()}


def compare(
    first: Result,
    second: Result,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    by_scene: bool = False,
) -> list[Difference]:
    """The differences second − first, dataset by dataset and metric by metric.

    by_scene: draw whole scenes in the bootstrap, since frames of one scene are alike
    Refused: other protocols, datasets, pairs or pixels; the message names the first difference.
    """
    for name in metrics:
        if name not in METRICS:
            raise ArgumentError(f"compare: no metric {name!r}; there are {', '.join(METRICS)}")
    check_comparable(first, second)
    rows = []
    for dataset, pairs in ((name, each.pairs) for name, each in first.datasets.items()):
        scene = {pair.name: pair.scene for pair in pairs}
        for metric in metrics:
            a, b = first.per_pair(metric, dataset), second.per_pair(metric, dataset)
            if not a:
                continue
            difference = np.array([b[name] - a[name] for name in a])
            groups = [scene[name] for name in a] if by_scene else None
            low, high = bootstrap_interval(difference, groups=groups)
            rows.append(
                Difference(
                    dataset,
                    metric,
                    METRICS[metric].unit,
                    len(a),
                    math.fsum(a.values()) / len(a),
                    math.fsum(b.values()) / len(a),
                    math.fsum(difference) / len(a),
                    low,
                    high,
                    sign_test(difference),
                    int((difference < 0).sum()),
                    int((difference == 0).sum()),
                    int((difference > 0).sum()),
                )
            )
    return rows


def write_comparison(
    path: str | os.PathLike[str],
    first: Result,
    others: Sequence[tuple[Result, Sequence[Difference]]],
    overwrite: bool = False,
) -> None:
    """The differences of other results to the first one, as JSON."""
    content = {
        "format": FORMAT,
        "first": first.label,
        "protocol": first.protocol.as_dict(),
        "others": [
            {"label": other.label, "differences": [row.as_dict() for row in rows]}
            for other, rows in others
        ],
    }
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n", overwrite)


def check_comparable(first: Result, second: Result) -> None:
    """Refuse results that were not measured alike, naming the first thing that differs."""
    labels = f"{first.label or 'the first'} and {second.label or 'the second'}"
    said = first_difference(first.protocol.as_dict(), second.protocol.as_dict(), "")
    if said:
        raise ArgumentError(
            f"{labels} cannot be compared: their protocols differ in {said}. Evaluate both under "
            f"one protocol."
        )
    for here, there, whose in ((first, second, "second"), (second, first, "first")):
        lost = [name for name in here.datasets if name not in there.datasets]
        if lost:
            raise ArgumentError(
                f"{labels} cannot be compared: the {whose} has no {lost[0]}. Evaluate both on "
                f"the same pairs."
            )
    for dataset, a in first.datasets.items():
        b = second.datasets[dataset]
        said = _different_pair(
            {pair.name: pair for pair in a.pairs}, {pair.name: pair for pair in b.pairs}
        )
        if said:
            raise ArgumentError(
                f"{labels} cannot be compared: in {dataset}, {said}. Evaluate both on the same "
                f"pairs."
            )


def first_difference(a: Any, b: Any, place: str) -> str:
    """Where two nested values first differ, as "settings.kitti.iters (24 and 32)"; else ""."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            inside = f"{place}.{key}" if place else str(key)
            said = first_difference(a.get(key), b.get(key), inside)
            if said:
                return said
        return ""
    return "" if a == b else f"{place} ({a!r} and {b!r})"


def _different_pair(a: dict[str, PairResult], b: dict[str, PairResult]) -> str:
    for here, there, whose in ((a, b, "second"), (b, a, "first")):
        for name in here:
            if name not in there:
                return f"the pair {name} is not in the {whose}"
    for name in a:
        known, other = (
            {k: n for k, n in sums.items() if k.startswith("pixels/")}
            for sums in (a[name].sums, b[name].sums)
        )
        said = first_difference(known, other, "")
        hashes = a[name].truth, b[name].truth
        if not said and all(hashes) and hashes[0] != hashes[1]:
            said = (
                "as many known pixels, but other vectors or maps; evaluate both again if one is old"
            )
        if said:
            return f"the pair {name} has another truth: {said}"
    return ""

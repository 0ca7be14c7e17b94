"""The results of a study, as one JSON file that can be continued.

A cell is one network on one source under one stress at one level, with its numbers pair by pair.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError, FileError
from lcv.evaluate.compare import bootstrap_interval, first_difference
from lcv.evaluate.metrics import METRICS, metrics_from
from lcv.files import read_json, write_text

FORMAT = "lcv robustness 1"
NONE = "none"
"""The stress of frames as they are; its level is 0."""
QUOTED = ("epe", "epe_image", "fl", "fl_image", "px1", "px3", "px5", "wauc")
INTERVALS = {"epe_image": "error", "fl_image": "outlier"}
"""Metrics that get an interval over pairs, and the measure whose mean in a pair they average."""

LEAST_SCENES = 5
"""Fewer scenes get no interval: of two, a bootstrap just spans the two numbers."""

Key = tuple[str, str, str, float]
Columns = dict[str, list[float]]
"""Sums of each pair by "MEASURE/REGION", a column each, see `lcv.evaluate.metrics`."""


@dataclass
class Study:
    """Settings that decide numbers, and the cells measured so far.

    identities: hashes by "kind name", of sources, networks and patches
    about: what they are, for readers; groups: by source, the scene of each pair
    """

    settings: dict[str, Any]
    identities: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    cells: dict[Key, Columns] = field(default_factory=dict)
    _described: dict[Key, dict[str, Any]] = field(default_factory=dict, repr=False)

    def add(self, key: Key, columns: Columns) -> None:
        self.cells[key] = columns
        self._described.pop(key, None)

    def means(self, key: Key, measure: str, region: str = "all") -> list[float | None]:
        """The mean of a measure in each pair, None where the region is empty."""
        columns = self.cells[key]
        totals, counts = columns[f"{measure}/{region}"], columns[f"pixels/{region}"]
        return [t / n if n else None for t, n in zip(totals, counts, strict=True)]

    def metrics(self, key: Key) -> dict[str, float]:
        """Named metrics over all pairs of a cell."""
        columns = self.cells[key]
        names = [name for name in columns if name.endswith("/all")]
        rows = [
            dict(zip(names, row, strict=True))
            for row in zip(*(columns[name] for name in names), strict=True)
        ]
        found = metrics_from(rows)
        return {name: found[name] for name in QUOTED if name in found}

    def interval(self, key: Key, metric: str) -> tuple[float, float] | None:
        """Where a mean over pairs lies, by the bootstrap over scenes; None for too few of them."""
        values = self.means(key, INTERVALS[metric])
        share = 100.0 if METRICS[metric].unit == "%" else 1.0
        return interval([None if v is None else share * v for v in values], self.groups[key[0]])

    def described(self, key: Key) -> dict[str, Any]:
        """A cell with its metrics and intervals; made once, since a bootstrap takes its time."""
        if key not in self._described:
            source, network, stress, level = key
            spans = {name: self.interval(key, name) for name in INTERVALS}
            self._described[key] = {
                "source": source,
                "network": network,
                "stress": stress,
                "level": level,
                "metrics": self.metrics(key),
                "intervals": {name: span for name, span in spans.items() if span},
                "pairs": self.cells[key],
            }
        return self._described[key]

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "settings": self.settings,
            "identities": self.identities,
            **self.about,
            "groups": self.groups,
            "cells": [self.described(key) for key in self.cells],
        }

    def save(self, path: Path) -> None:
        text = json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)
        write_text(path, text + "\n", overwrite=True)


def read_study(path: Path) -> Study:
    """A study that `Study.save` wrote."""
    said = read_json(path, "a result that `lcv robust` wrote", FORMAT)
    own = ("format", "settings", "identities", "groups", "cells")
    try:
        study = Study(
            said["settings"],
            said["identities"],
            {name: value for name, value in said.items() if name not in own},
            said["groups"],
        )
        for cell in said["cells"]:
            key = cell["source"], cell["network"], cell["stress"], float(cell["level"])
            study.add(key, cell["pairs"])
            study.metrics(key)
        return study
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f"{path}: is damaged or of another version: {error!r}") from None


def continued(path: Path, wanted: Study) -> Study:
    """The study at `path` if it may be continued with these settings, or `wanted` if there is none.

    Sources, networks, stresses and levels may be added. A changed setting, or other weights, pairs
    or patches under a known name, are refused.
    """
    if not path.exists():
        return wanted
    found = read_study(path)
    changed = [
        said
        for name in sorted({*found.settings, *wanted.settings})
        if (said := first_difference(found.settings.get(name), wanted.settings.get(name), name))
    ]
    others = [
        _another(name, found, wanted)
        for name, identity in wanted.identities.items()
        if found.identities.get(name, identity) != identity
    ]
    if changed:
        others.insert(0, f"then and now differ in {', '.join(changed)}")
    if others:
        raise ArgumentError(
            f"{path}: was measured otherwise: {'; '.join(others)}. Give another folder, or say "
            f"--overwrite to measure everything again"
        )
    about = found.about | wanted.about
    for name in ("networks", "sources", "stresses"):
        about[name] = found.about.get(name, {}) | wanted.about.get(name, {})
    identities, groups = found.identities | wanted.identities, found.groups | wanted.groups
    return Study(wanted.settings, identities, about, groups, found.cells)


def _another(name: str, found: Study, wanted: Study) -> str:
    """What differs under a known name; of a source, how many pairs there were and are."""
    label = name.removeprefix("source ")
    before, now = len(found.groups.get(label, ())), len(wanted.groups.get(label, ()))
    if label != name and before != now:
        return f"{name} has {now} pair{'s' * (now != 1)}, and had {before}"
    return f"{name} is not the one it was"


def known(values: Sequence[float | None]) -> list[float]:
    """Without those of pairs that have no pixel to measure."""
    return [value for value in values if value is not None]


def less(a: Sequence[float | None], b: Sequence[float | None]) -> list[float | None]:
    """a − b, pair by pair."""
    return [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]


def interval(values: Sequence[float | None], groups: Sequence[str]) -> tuple[float, float] | None:
    """A 95 % bootstrap interval of the mean over groups; None below LEAST_SCENES of them."""
    scenes = [group for group, value in zip(groups, values, strict=True) if value is not None]
    if len(set(scenes)) < LEAST_SCENES:
        return None
    return bootstrap_interval(known(values), groups=scenes)

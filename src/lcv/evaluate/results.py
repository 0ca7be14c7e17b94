"""A result: numbers by dataset and by pair, with the protocol, the weights and the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError, FileError, LcvError
from lcv.evaluate.metrics import METRICS, metrics_from
from lcv.evaluate.protocols import Protocol
from lcv.evaluate.results_check import check_results
from lcv.files import read_json, write_text

FORMAT = "lcv evaluation 1"


@dataclass(frozen=True)
class PairResult:
    """One pair: its name, its scene, the sums that its metrics come from, and a hash of its truth
    ("" in results of older versions)."""

    name: str
    scene: str
    sums: dict[str, float]
    truth: str = ""

    def metrics(self) -> dict[str, float]:
        """Its own metrics by name."""
        return metrics_from([self.sums])


@dataclass(frozen=True)
class DatasetResult:
    """What was measured on one dataset.

    metrics:  by name, see `METRICS`;  pairs: in the dataset's order
    settings: {"iters", "pad"} the network was called with; None is a network's own rule
    model:    how the network was built, and whether its W is I
    weights:  {"file", "sha256", "published"} or None
    """

    metrics: dict[str, float]
    pairs: tuple[PairResult, ...]
    settings: dict[str, Any]
    model: dict[str, Any]
    weights: dict[str, Any] | None = None


@dataclass(frozen=True)
class Result:
    """What was measured of one network, on any number of datasets, under one protocol."""

    datasets: dict[str, DatasetResult]
    protocol: Protocol
    provenance: dict[str, Any]
    label: str = ""

    def metric(self, name: str, dataset: str) -> float:
        """One number. "epe" of "kitti2015", …"""
        metrics = self._dataset(dataset).metrics
        if name not in metrics:
            raise ArgumentError(
                f"{self.label or 'this result'} has no metric {name!r} of {dataset}; it has "
                f"{', '.join(metrics)}"
            )
        return metrics[name]

    def per_pair(self, name: str, dataset: str) -> dict[str, float]:
        """A metric of every pair that has it, by the pair's name, in order."""
        if name not in METRICS:
            raise ArgumentError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
        values = {pair.name: pair.metrics() for pair in self._dataset(dataset).pairs}
        return {pair: metrics[name] for pair, metrics in values.items() if name in metrics}

    def as_dict(self) -> dict[str, Any]:
        datasets = {}
        for name, each in self.datasets.items():
            pairs = [asdict(pair) for pair in each.pairs]
            datasets[name] = {**asdict(each), "pairs": pairs}
        return {
            "label": self.label,
            "protocol": self.protocol.as_dict(),
            "provenance": self.provenance,
            "datasets": datasets,
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Result:
        datasets = {}
        for name, each in said["datasets"].items():
            pairs = tuple(PairResult(**pair) for pair in each["pairs"])
            datasets[name] = DatasetResult(**{**each, "pairs": pairs})
        protocol = Protocol.from_dict(said["protocol"])
        return cls(datasets, protocol, said["provenance"], said.get("label", ""))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write it as JSON."""
        write_results(path, [self], overwrite)

    def _dataset(self, name: str) -> DatasetResult:
        if name not in self.datasets:
            raise ArgumentError(
                f"{self.label or 'this result'} has no dataset {name!r}; it has "
                f"{', '.join(self.datasets)}"
            )
        return self.datasets[name]


def write_results(
    path: str | os.PathLike[str], results: Sequence[Result], overwrite: bool = False
) -> None:
    """One file of one or more results, with the definition of every metric in it."""
    used = {name for r in results for each in r.datasets.values() for name in each.metrics}
    legend = {
        name: {"title": m.title, "unit": m.unit, "definition": m.definition}
        for name, m in METRICS.items()
        if name in used
    }
    content = {
        "format": FORMAT,
        "metrics": legend,
        "results": [result.as_dict() for result in results],
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n", overwrite)


def read_results(path: str | os.PathLike[str]) -> list[Result]:
    """The results of a file that `write_results` wrote; anything else is refused by its place."""
    path = Path(path)
    said = read_json(path, "a result that `lcv eval -o` wrote", FORMAT)
    try:
        check_results(said)
        return [Result.from_dict(each) for each in said["results"]]
    except LcvError as error:
        raise FileError(f"{path}: is damaged or of another version: {error}") from None

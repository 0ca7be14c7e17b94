"""Who is evaluated: a network by its name, with weights that may differ from dataset to dataset.

RAFT's authors publish one file for Sintel and one for KITTI, and a table that quotes both has one
row for the two: raft-large with {"": "raft-sintel", "kitti": "raft-kitti"}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError
from lcv.evaluate.protocols import Protocol
from lcv.evaluate.results import Result
from lcv.evaluate.run import Readable, evaluate
from lcv.models.build import find, load, network_and_weights
from lcv.models.embedded import EMBEDDED, embedded_file
from lcv.models.factory import label_of
from lcv.models.named import check_name
from lcv.models.published import PUBLISHED


@dataclass(frozen=True)
class Entrant:
    """A network and its weights by the beginning of a dataset's name; "" stands for all others."""

    model: str
    weights: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As in "raft-large, raft-sintel.pth, kitti: raft-kitti.pth"."""
        words = [
            f"{where}: {Path(file).name}" if where else Path(file).name
            for where, file in sorted(self.weights.items())
        ]
        return ", ".join([label_of(self.model), *words])

    def chosen(self, dataset: str) -> str | None:
        """The weights for a dataset: those of the longest name it begins with; None is our own."""
        known = [where for where in self.weights if dataset.startswith(where)]
        return self.weights[max(known, key=len)] if known else None


def entrant_of(model: str | None, weights: dict[str, str]) -> Entrant:
    """Of a name and weights as a user gives them: a file alone says its network."""
    if model is None or not weights:
        first = next(iter(weights.values()), None)
        model, found = network_and_weights(model, first)
        if found is not None:
            weights = weights or {"": str(found)}
    return Entrant(model, weights)


def check_entrants(entrants: Iterable[Entrant], records: Sequence[Readable]) -> None:
    """Refuse what would fail later: unknown networks, lost files, weights that fit no dataset."""
    datasets = list(dict.fromkeys(record.dataset for record in records))
    for entrant in entrants:
        for where, file in entrant.weights.items():
            if not any(dataset.startswith(where) for dataset in datasets):
                raise ArgumentError(
                    f"weights: {where}={file} fits no dataset; there are {', '.join(datasets)}"
                )
        if entrant.weights:
            check_name(entrant.model)
        for file in entrant.weights.values():
            if file not in PUBLISHED:  # those are fetched when their turn comes
                find(file)


def evaluate_entrant(
    entrant: Entrant, records: Sequence[Readable], protocol: Protocol, **options: Any
) -> Result:
    """`evaluate` with the right weights for every dataset; options are those of `evaluate`."""
    check_entrants([entrant], records)
    datasets = list(dict.fromkeys(record.dataset for record in records))
    joined: Result | None = None
    for weights in dict.fromkeys(map(entrant.chosen, datasets)):
        mine = [record for record in records if entrant.chosen(record.dataset) == weights]
        model = load(entrant.model, weights)
        file = find(weights) if weights is not None else None
        if file is None and entrant.model in EMBEDDED:
            file = embedded_file(entrant.model)
        result = evaluate(model, mine, protocol, weights=file, label=entrant.label, **options)
        both = {**(joined or result).datasets, **result.datasets}
        joined = replace(joined or result, datasets=both)
    if joined is None:
        raise ArgumentError("evaluate: there is no pair to measure; wanted at least one with truth")
    return replace(joined, datasets={name: joined.datasets[name] for name in datasets})

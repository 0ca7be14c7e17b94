"""Datasets joined by weights: RAFT's 100 × Sintel + 200 × KITTI + 5 × HD1K + Things."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

from lcv.data.record import Record
from lcv.errors import ArgumentError


class Named(Protocol):
    """A sequence of records with a name: a Dataset, or another Mix."""

    @property
    def name(self) -> str: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


@dataclass(frozen=True, init=False)
class Mix(Sequence[Record]):
    """Each dataset repeated `weight` times, one after the other; nothing is copied.

        mix = Mix((sintel, 100), (kitti, 200), (hd1k, 5), (things, 1))

    As a sequence it has Σ weight · len(dataset) records; a shuffled pass over it sees every
    record of a dataset exactly `weight` times. Immutable: `with_part` returns a new Mix.
    """

    parts: tuple[tuple[Named, int], ...]
    _ends: tuple[int, ...]

    def __init__(self, *parts: tuple[Named, int]) -> None:
        for part in parts:
            if not (isinstance(part, tuple) and len(part) == 2):
                raise ArgumentError(f"Mix: {part!r} is not a pair (dataset, weight)")
            dataset, weight = part
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise ArgumentError(
                    f"Mix: the weight of {dataset.name} is {weight!r}, wanted a whole number of "
                    f"repetitions from 1 on; leave a dataset out to give it no weight"
                )
            if not len(dataset):
                raise ArgumentError(f"Mix: {dataset.name} is empty")
        object.__setattr__(self, "parts", tuple(parts))
        ends = accumulate(weight * len(dataset) for dataset, weight in parts)
        object.__setattr__(self, "_ends", tuple(ends))

    @property
    def name(self) -> str:
        """Such as "100×sintel-training + 5×hd1k-training"."""
        return " + ".join(
            dataset.name if weight == 1 else f"{weight}×{dataset.name}"
            for dataset, weight in self.parts
        )

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"Mix: index {index} is not in 0..{len(self) - 1}")
        which = bisect_right(self._ends, index)
        dataset, _ = self.parts[which]
        before = self._ends[which - 1] if which else 0
        return dataset[(index - before) % len(dataset)]

    def __iter__(self) -> Iterator[Record]:
        return (self[i] for i in range(len(self)))

    def shares(self) -> dict[str, float]:
        """The fraction of the records that comes from each part, by its name; they sum to 1."""
        shares: dict[str, float] = {}
        for dataset, weight in self.parts:
            share = weight * len(dataset) / len(self)
            shares[dataset.name] = shares.get(dataset.name, 0.0) + share
        return shares

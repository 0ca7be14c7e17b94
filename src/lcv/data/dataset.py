"""An immutable list of records with a name, and what `lcv data check` is told about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError


@dataclass(frozen=True)
class Dataset(Sequence[Record]):
    """Records in a fixed order. Every method returns a new object."""

    name: str
    records: tuple[Record, ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", tuple(self.records))

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Record | Dataset:
        if isinstance(index, slice):
            return Dataset(self.name, self.records[index])
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __add__(self, other: Dataset) -> Dataset:
        return Dataset(f"{self.name} + {other.name}", self.records + other.records)

    def only(self, keep: Callable[[Record], bool], name: str | None = None) -> Dataset:
        """The records for which `keep` is true."""
        return Dataset(name or self.name, tuple(record for record in self if keep(record)))

    def without(self, names: Collection[str]) -> Dataset:
        """All records but those named; a name that is not there is an error."""
        unknown = set(names) - {record.name for record in self}
        if unknown:
            raise ArgumentError(
                f"Dataset.without: {self.name} has no record {sorted(unknown)[0]!r}; "
                f"its first is {self.records[0].name if self.records else None!r}"
            )
        return self.only(lambda record: record.name not in names)


@dataclass(frozen=True)
class Part:
    """A group of pairs that is counted and judged together, such as Sintel's training/clean.

    expected: how many pairs a complete copy has; None if nobody knows.
    """

    label: str
    dataset: Dataset
    expected: int | None = None


@dataclass(frozen=True)
class Holdout:
    """Two sets of records of which no frame may be in both."""

    label: str
    train: Dataset
    validation: Dataset


@dataclass(frozen=True)
class Survey:
    """Everything found of one dataset in one folder."""

    kind: str
    root: Path
    parts: tuple[Part, ...]
    holdouts: tuple[Holdout, ...] = ()


def missing_files(
    records: Iterable[Record], listed: dict[Path, set[str]] | None = None
) -> list[tuple[Record, Path]]:
    """The files that records name and that are not there; each folder is listed once.

    listed: what is in each folder, kept from call to call
    """
    listed = {} if listed is None else listed
    lost = []
    for record in records:
        for path in dict.fromkeys(record.files()):
            folder = path.parent
            if folder not in listed:
                listed[folder] = set(os.listdir(folder)) if folder.is_dir() else set()
            if path.name not in listed[folder]:
                lost.append((record, path))
    return lost


def assemble(name: str, home: Path, records: Iterable[Record], *, strict: bool) -> Dataset:
    """The dataset, refused if it is empty or, when `strict`, if a file it names is missing."""
    dataset = Dataset(name, tuple(records))
    if not strict:
        return dataset
    if not len(dataset):
        raise FileError(f"{home}: no pair of {name} was found in this folder")
    refuse_missing(dataset)
    return dataset


def refuse_missing(records: Iterable[Record]) -> None:
    """Refuse pairs of which a file is missing."""
    lost = missing_files(records)
    if lost:
        record, path = lost[0]
        more = f" (and {len(lost) - 1} more files)" if len(lost) > 1 else ""
        raise FileError(
            f"{path}: missing from the folder {path.parent}; the pair {record.name!r} of "
            f"{record.dataset} needs it{more}; `lcv data check` lists all that is wrong"
        )


def choose(function: str, argument: str, value: str, known: Collection[str]) -> str:
    """`value`, if it is one of the known words."""
    if value not in known:
        words = ", ".join(repr(word) for word in known)
        raise ArgumentError(f"{function}: {argument} is {value!r}, wanted one of {words}")
    return value

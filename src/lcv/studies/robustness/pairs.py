"""The pairs that are stressed: those of the benchmark or of datasets, in batches of one size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.protocols import Protocol
from lcv.evaluate.run import Readable, tensors_of
from lcv.evaluate.sources import records_in
from lcv.models.published import sha256_of
from lcv.studies.robustness.registry import Pairs
from lcv.train.kept import Kept, Pair

KEPT = {"cpu": 2**30, "cuda": 2**32}
"""Pairs of a source stay in memory up to this many bytes; more are read again for every level."""


class Source:
    """Pairs with truth under one name, which every stress sees in the same order."""

    def __init__(self, label: str, records: Sequence[Readable]) -> None:
        if not records:
            raise ArgumentError(f"{label}: there is no pair with truth here, wanted at least one")
        self.label = label
        self.records = tuple(records)
        self._kept: Kept | None = None

    def __len__(self) -> int:
        return len(self.records)

    @property
    def groups(self) -> list[str]:
        """The scene of each pair, since pairs of one scene are not independent."""
        return [f"{record.dataset} {record.scene or record.name}" for record in self.records]

    @property
    def fingerprint(self) -> str:
        """Changes with the names of the pairs and the content of their files, truth included."""
        hashes: dict[Path, str] = {}
        lines = [f"{r.dataset} {r.name} {_content(r, hashes)}" for r in self.records]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def batches(self, batch: int, device: torch.device, protocol: Protocol) -> Iterator[Pairs]:
        """All pairs in order, at most `batch` of one dataset and size at once."""
        self._kept = self._kept or Kept(KEPT.get(device.type, KEPT["cpu"]))
        first = 0
        for tensors in self._kept.pairs("", lambda: self._read_all(batch, device, protocol)):
            indices = range(first, first + len(tensors[0]))
            yield Pairs(*tensors, tuple(indices))
            first = indices.stop

    def _read_all(self, batch: int, device: torch.device, protocol: Protocol) -> Iterator[Pair]:
        waiting: list[Pairs] = []
        before: tuple[Any, ...] = ()
        for index, record in enumerate(self.records):
            pair = read_pair(record, index, device, protocol)
            kind = record.dataset, pair.flow.shape
            if waiting and (kind != before or len(waiting) == batch):
                yield _joined(waiting)
                waiting = []
            waiting.append(pair)
            before = kind
        yield _joined(waiting)


def open_source(word: str, limit: int | None = None, device: str = "cpu") -> Source:
    """The pairs that a word of the command line means; the first `limit` of each dataset.

    word: "benchmark", a folder or list file, or NAME=PLACE, several places joined by ":" as in PATH
    """
    label, equals, where = word.partition("=")
    if not equals or Path(word).exists():
        label, where = Path(word).name or Path(word).resolve().name, word
    places = [where] if Path(where).exists() else where.split(os.pathsep)
    return Source(label, records_in(places, limit=limit, device=device))


def read_pair(record: Readable, index: int, device: torch.device, protocol: Protocol) -> Pairs:
    """One pair on the device, with the pixels that the protocol counts."""
    try:
        sample = record.read()
    except ModuleNotFoundError as error:
        raise FileError(
            f"{record.dataset}, pair {record.name}: reading it needs the package {error.name}, "
            f"which is not installed here; install it, or leave {record.dataset} out"
        ) from None
    image1, image2, flow, valid, *_ = tensors_of(record, sample, protocol, device)
    known = valid[None, None]
    return Pairs(image1.float(), image2.float(), flow[None].float(), known, (index,))


def _joined(pairs: list[Pairs]) -> Pair:
    first, second = torch.cat([p.image1 for p in pairs]), torch.cat([p.image2 for p in pairs])
    return first, second, torch.cat([p.flow for p in pairs]), torch.cat([p.valid for p in pairs])


def _content(record: Readable, hashes: dict[Path, str]) -> str:
    """The hashes of a pair's files; a procedural pair is known by its name."""
    if not isinstance(record, Record):
        return ""
    for path in record.files():
        if path not in hashes:  # many pairs share a video
            hashes[path] = sha256_of(path)
    return " ".join(hashes[path] for path in record.files())

"""The pairs that are stressed: those of the benchmark or of datasets, in batches of one size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.protocols import Protocol
from lcv.evaluate.run import Readable
from lcv.evaluate.sources import records_in
from lcv.models.published import sha256_of
from lcv.studies.robustness.registry import Pairs

KEPT = {"cpu": 2**30, "cuda": 2**32}
"""Pairs stay in memory between stresses up to this many bytes, and are read anew beyond."""


class Source:
    """Pairs with truth under one name, which every stress sees in the same order."""

    def __init__(self, label: str, records: Sequence[Readable]) -> None:
        if not records:
            raise ArgumentError(f"{label}: there is no pair with truth here, wanted at least one")
        self.label = label
        self.records = tuple(records)
        self._kept: list[Pairs] | None = None
        self._too_large = False

    def __len__(self) -> int:
        return len(self.records)

    @property
    def groups(self) -> list[str]:
        """The scene of each pair: pairs of one scene are no independent witnesses."""
        return [f"{record.dataset} {record.scene or record.name}" for record in self.records]

    @property
    def fingerprint(self) -> str:
        """Changes with the names of the pairs and the content of their files, truth included."""
        hashes: dict[Path, str] = {}
        lines = [f"{r.dataset} {r.name} {_content(r, hashes)}" for r in self.records]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def batches(self, batch: int, device: torch.device, protocol: Protocol) -> Iterator[Pairs]:
        """All pairs in order, at most `batch` of one dataset and size at once."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Pairs] = []
        size = 0
        for pairs in self._read_all(batch, device, protocol):
            size += _bytes(pairs)
            self._too_large |= size > KEPT.get(device.type, 2**30)
            if self._too_large:
                kept.clear()
            else:
                kept.append(pairs)
            yield pairs
        if not self._too_large:
            self._kept = kept

    def _read_all(self, batch: int, device: torch.device, protocol: Protocol) -> Iterator[Pairs]:
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
    if sample.flow is None or sample.valid is None:
        raise ArgumentError(
            f"{record.dataset}, pair {record.name}: has no truth to measure against"
        )
    valid = sample.valid
    if protocol.validity == "not-invalid" and sample.invalid is not None:
        valid = valid & ~sample.invalid
    if protocol.limit is not None:
        valid = valid & (np.abs(sample.flow) < protocol.limit).all(-1)
    first, second, flow = (
        torch.from_numpy(np.array(array)).to(device).movedim(2, 0)[None].float()
        for array in (sample.image1, sample.image2, sample.flow)
    )
    known = torch.from_numpy(np.array(valid)).to(device)[None, None]
    return Pairs(first, second, flow, known, (index,))


def _joined(pairs: list[Pairs]) -> Pairs:
    def along(name: str) -> Tensor:
        return torch.cat([getattr(pair, name) for pair in pairs])

    indices = tuple(index for pair in pairs for index in pair.indices)
    return Pairs(along("image1"), along("image2"), along("flow"), along("valid"), indices)


def _content(record: Readable, hashes: dict[Path, str]) -> str:
    """The hashes of a pair's files; what is made and not read is told by its name."""
    if not isinstance(record, Record):
        return ""
    for path in record.files():
        if path not in hashes:  # a film belongs to many pairs
            hashes[path] = sha256_of(path)
    return " ".join(hashes[path] for path in record.files())


def _bytes(pairs: Pairs) -> int:
    tensors = (pairs.image1, pairs.image2, pairs.flow, pairs.valid)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

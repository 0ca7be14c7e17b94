"""The pairs with truth that folders hold, and those of the procedural benchmark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch

from lcv.data.chairs import chairs
from lcv.data.dataset import Survey, refuse_missing
from lcv.data.kitti import kitti
from lcv.data.recognise import recognise
from lcv.data.record import Record, Sample
from lcv.data.sintel import PASSES, sintel
from lcv.data.synthetic.benchmark import PAIRS, SEED, SIZE
from lcv.data.synthetic.recipe import BENCHMARK
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError
from lcv.evaluate.run import Readable

BENCHMARK_WORD = "benchmark"
_PROCEDURAL = "procedural pairs"


@dataclass(frozen=True)
class BenchmarkPair:
    """One pair of the procedural benchmark, made when it is read; float images, occlusion too."""

    index: int
    device: str = "cpu"
    dataset: str = BENCHMARK_WORD

    @property
    def name(self) -> str:
        return f"{self.index:03d}"

    @property
    def scene(self) -> str:
        return self.name

    def read(self) -> Sample:
        bank = procedural_bank("held-out", device=str(torch.empty(0, device=self.device).device))
        made = generate(BENCHMARK, SEED, [self.index], SIZE, self.device, textures=bank)
        image1, image2, flow, occluded = (
            x[0].permute(1, 2, 0).contiguous().cpu().numpy()
            for x in (made.image1, made.image2, made.flow, made.occluded)
        )
        hidden = occluded[..., 0]
        record: Any = self  # a sample only carries it along
        return Sample(record, image1, image2, flow, hidden | True, hidden)


def records_in(
    places: Iterable[str | os.PathLike[str]],
    *,
    split: str | None = None,
    only: Sequence[str] = (),
    limit: int | None = None,
    device: str = "cpu",
) -> list[Readable]:
    """Every pair with truth of these folders, dataset after dataset.

    places: folders of datasets, list files, or the word "benchmark"
    split:  a part of the datasets that have it: "val" or "train" of FlyingChairs, "vcn-val",
            "vcn-train" of KITTI and Sintel, "paper-val", "paper-train" of KITTI
    only:   patterns such as "kitti2015" or "middlebury/Rubber*"; a pair is taken if one fits, and
            "sintel" fits what "sintel-clean" and "sintel-final" do
    limit:  at most this many pairs of each dataset, the first ones
    """
    found: list[Readable] = []
    for place in places:
        found += (
            [BenchmarkPair(index, device) for index in range(PAIRS)]
            if os.fspath(place) == BENCHMARK_WORD
            else _records_of(Path(place), split)
        )
    names = list(dict.fromkeys(record.dataset for record in found))
    for pattern in only:
        if not any(_fits(record, pattern) for record in found):
            raise ArgumentError(
                f"only: no pair fits {pattern!r}; the datasets are {', '.join(names)}, and a "
                f"pair is named as in {found[0].dataset}/{found[0].name}"
            )
    if only:
        found = [record for record in found if any(_fits(record, p) for p in only)]
    if limit is not None:
        found = [
            record for name in names for record in [r for r in found if r.dataset == name][:limit]
        ]
    refuse_missing(record for record in found if isinstance(record, Record))
    return found


def _fits(record: Readable, pattern: str) -> bool:
    """Whether a pattern means this pair, by its dataset or the family of it: "sintel" is both passes."""
    names = (record.dataset, record.dataset.partition("-")[0])
    words = (word for name in names for word in (name, f"{name}/{record.name}"))
    return any(fnmatchcase(word, pattern) for word in words)


def _records_of(place: Path, split: str | None) -> list[Readable]:
    records: list[Readable] = []
    for home, kind in recognise(place):
        survey = kind.survey(home)
        if split is None:
            here = [r for part in survey.parts for r in part.dataset]
        else:
            here = _split(survey, split)
        here = [record for record in here if record.flow is not None]
        if survey.kind == _PROCEDURAL:  # written in Sintel's layout, but not Sintel
            here = [replace(r, dataset=r.dataset.replace("sintel", "procedural")) for r in here]
        records += here
    if not records:
        wanted = "wanted a dataset with truth" if split is None else f"none has the split {split!r}"
        raise ArgumentError(f"{place}: there is no pair with truth here; {wanted}")
    return records


_SPLITS: dict[str, Callable[[Path, str], Iterable[Record]]] = {
    "FlyingChairs": lambda home, split: chairs(home, split, strict=False),
    "KITTI 2015": lambda home, split: kitti(home, scenes=split, year=2015, strict=False),
    "KITTI 2012": lambda home, split: kitti(home, scenes=split, year=2012, strict=False),
    "Sintel": lambda home, split: [
        record
        for name in PASSES
        if (home / "training" / name).is_dir()
        for record in sintel(home, "training", (name,), split, strict=False)
    ],
}


def _split(survey: Survey, split: str) -> list[Record]:
    """The records of a split, or none where the dataset does not know it."""
    reader = _SPLITS.get(survey.kind)
    if reader is None:
        return []
    try:
        return list(reader(survey.root, split))
    except ArgumentError:  # a dataset with splits, but none of that name
        return []

"""Which pairs the truth is tested on, their neighbours, and the test of one pair from its files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from lcv.data.dataset import Part
from lcv.data.record import Record, read_frame, read_truth
from lcv.data.truth_test import Duel, Neighbour, duels
from lcv.errors import FileError

_NUMBERED = re.compile(r"(.*?)(\d+)$")
Triple = tuple[Record, Record | None, Record | None]


def pairs_to_test(part: Part, broken: set[str], limit: int) -> list[Triple]:
    """At most `limit` pairs with truth and whole files, spread evenly; with each the pair after
    and the pair before it, None where there is none.

    broken: paths of files that cannot be used.
    """
    whole = [
        record
        for record in part.dataset
        if record.flow is not None and broken.isdisjoint(map(str, record.files()))
    ]
    starts = {record.image1: record for record in whole}
    ends = {record.image2: record for record in whole}
    chosen = whole
    if len(whole) > limit:
        places = np.unique(np.linspace(0, len(whole) - 1, limit).round().astype(int))
        chosen = [whole[place] for place in places]
    return [
        (r, starts.get(r.image2) or _numbered(r, 1), ends.get(r.image1) or _numbered(r, -1))
        for r in chosen
    ]


def judge_pair(record: Record, after: Record | None, before: Record | None) -> dict[str, Duel]:
    """Read a pair and its neighbours; the truth against every rival, where it is known and seen."""
    sample = record.read()
    if sample.flow is None or sample.valid is None:
        return {}
    usable = sample.valid
    for hidden in (sample.occluded, sample.invalid):
        if hidden is not None:
            usable = usable & ~hidden
    return duels(
        record.name,
        sample.image1,
        sample.image2,
        sample.flow,
        usable,
        _neighbour(after),
        _neighbour(before),
    )


def _numbered(record: Record, where: int) -> Record | None:
    """The pair after (1) or before (−1) by the numbers of the frames, without a truth of its own."""
    if not (isinstance(record.image1, Path) and isinstance(record.image2, Path)):
        return None
    first, second = (_NUMBERED.match(p.stem) for p in (record.image1, record.image2))
    if not (first and second and first[1] == second[1]):
        return None
    step = int(second[2]) - int(first[2])
    number = int((second if where > 0 else first)[2]) + where * step
    path = record.image1.with_name(f"{first[1]}{number:0{len(first[2])}d}{record.image1.suffix}")
    if abs(step) != 1 or number < 0 or not path.is_file():
        return None
    if where > 0:
        return Record(path.stem, record.image2, path)
    return Record(path.stem, path, record.image1)


def _neighbour(record: Record | None) -> Neighbour | None:
    if record is None:
        return None
    try:
        images = read_frame(record.image1), read_frame(record.image2)
        if record.flow is None:
            return Neighbour(*images)
        return Neighbour(*images, *read_truth(record.flow, record.step, record.disparity))
    except FileError:
        # A frame beside the pair that belongs to no pair of its own; those that do are reported.
        return None

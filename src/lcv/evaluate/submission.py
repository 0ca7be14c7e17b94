"""What a benchmark's server wants to be sent: which files, of which names, sizes and numbers.

Sintel: clean/<scene>/frame0001.flo and final/…, numbered from 1, as RAFT's authors name them; 12
scenes and 552 files a pass of 1024×436. KITTI 2015: flow/000000_10.png to 000199_10.png, sixteen
bits a channel, each of its image's size.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from lcv.data.kitti import TOTALS as KITTI_TOTALS
from lcv.data.kitti import kitti
from lcv.data.record import Record
from lcv.data.sintel import PASSES, sintel
from lcv.data.sintel import TOTALS as SINTEL_TOTALS
from lcv.errors import ArgumentError, FileError

SINTEL_SCENES = 12
SINTEL_SIZE = (436, 1024)
PATTERNS = {
    "sintel": re.compile(r"(clean|final)/([^/]+)/frame(\d{4})\.flo"),
    "kitti": re.compile(r"flow/(\d{6})_10\.png"),
}
EXAMPLES = {"sintel": "clean/<scene>/frame0001.flo", "kitti": "flow/000000_10.png"}
KINDS = tuple(PATTERNS)

Size = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """The files of one submission: name in the archive → the pair, in the order of the pairs."""

    kind: str
    records: dict[str, Record]

    def sizes(self) -> dict[str, Size]:
        """(height, width) that each file must have: that of its frame."""
        return {name: _frame_size(record) for name, record in self.records.items()}


def check_kind(kind: str) -> None:
    """Refuse a benchmark we do not know."""
    if kind not in KINDS:
        raise ArgumentError(f"there is no submission for {kind!r}; there are {', '.join(KINDS)}")


def layout_of(kind: str, data: str | os.PathLike[str]) -> Layout:
    """The submission that belongs to a dataset's test folder on disk, whole or not."""
    check_kind(kind)
    if kind == "kitti":
        pairs = kitti(data, "testing", year=2015)
        return Layout(kind, {f"flow/{record.name}.png": record for record in pairs})
    files: dict[str, Record] = {}
    place: Counter[tuple[str, str]] = Counter()
    for name in PASSES:
        for record in sintel(data, "test", (name,)):
            place[name, record.scene] += 1
            number = place[name, record.scene]
            files[f"{name}/{record.scene}/frame{number:04d}.flo"] = record
    return Layout(kind, files)


def official_faults(kind: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """In what a set of names departs from the official numbers: (place, what is wrong there)."""
    found = [match for name in names if (match := PATTERNS[kind].fullmatch(name))]
    if kind == "kitti":
        total = KITTI_TOTALS[2015]["testing"]
        wanted = [f"{number:06d}" for number in range(total)]
        here = {match[1] for match in found}
        lost = [number for number in wanted if number not in here]
        extra = sorted(here - set(wanted))
        faults = [(f"flow/{number}_10.png", f"missing; wanted {total} files") for number in lost]
        return faults + [
            (f"flow/{number}_10.png", f"one too many; the last of {total} is {wanted[-1]}_10.png")
            for number in extra
        ]
    faults = []
    total = SINTEL_TOTALS["test"]
    for name in PASSES:
        scenes: dict[str, set[int]] = {}
        for match in found:
            if match[1] == name:
                scenes.setdefault(match[2], set()).add(int(match[3]))
        count = sum(len(numbers) for numbers in scenes.values())
        if len(scenes) != SINTEL_SCENES:
            faults.append((f"{name}/", f"has {len(scenes)} scenes, wanted {SINTEL_SCENES}"))
        if count != total:
            faults.append((f"{name}/", f"has {count} files, wanted {total}"))
        for scene, numbers in scenes.items():
            for number in sorted(set(range(1, max(numbers) + 1)) - numbers):
                faults.append((f"{name}/{scene}/frame{number:04d}.flo", "missing"))
            if 0 in numbers:
                faults.append((f"{name}/{scene}/frame0000.flo", "files are numbered from 1"))
    return faults


def _frame_size(record: Record) -> Size:
    """(height, width) of a pair's first frame, from the file's head alone."""
    path = Path(str(record.image1))
    try:
        with Image.open(path) as picture:
            return picture.height, picture.width
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise FileError(f"{path}: its size cannot be read: {error}") from None

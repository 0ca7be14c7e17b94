"""FlyingChairs: 22,872 pairs of 512×384, data/00001_img1.ppm, 00001_img2.ppm, 00001_flow.flo."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lcv.data.dataset import Dataset, Holdout, Part, Survey, assemble, choose
from lcv.data.layouts import FLOW_SUFFIXES, IMAGE_SUFFIXES, find_home
from lcv.data.record import Record
from lcv.errors import FileError

NAMES = ("FlyingChairs_release", "FlyingChairs", "chairs")
TOTAL = 22_872
SPLITS = ("all", "train", "val")
SPLIT_FILES = ("FlyingChairs_train_val.txt", "chairs_split.txt")
_FILE = re.compile(r"(\d+)_(img1|img2|flow)$")


def chairs(
    root: str | os.PathLike[str],
    split: str = "all",
    *,
    split_file: str | os.PathLike[str] | None = None,
    strict: bool = True,
) -> Dataset:
    """FlyingChairs, or the part of it that the split file calls train (1) or validation (2).

    root: the dataset, its data folder, or the folder that holds it (RAFT's or torchvision's).
    split: "all" needs no split file; "train" and "val" do.
    split_file: looked for beside the data under both usual names if not given.
    strict: refuse a copy in which a file of a pair is missing.

    Line i belongs to the pair numbered i: in a full copy that is the i-th flow in sorted order,
    and in a partial copy every pair keeps its side.
    """
    choose("chairs", "split", split, SPLITS)
    home = find_home(root, "FlyingChairs", NAMES, is_home, "data")
    records = _records(_data_folder(home) or home)
    if split != "all":
        side = {"train": "1", "val": "2"}[split]
        path = _split_file(home, split_file)
        lines = _read_split(path)
        records = [r for r in records if _line(path, lines, int(r.scene)) == side]
    return assemble("chairs" if split == "all" else f"chairs-{split}", home, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether this folder, or its child `data`, holds numbered pairs with flow."""
    return _data_folder(folder) is not None


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    parts = (Part("data", chairs(folder, strict=False), TOTAL),)
    try:
        path = _split_file(folder, None)
    except FileError:
        return Survey("FlyingChairs", folder, parts)
    train, val = (chairs(folder, s, split_file=path, strict=False) for s in ("train", "val"))
    return Survey("FlyingChairs", folder, parts, (Holdout(path.name, train, val),))


def _data_folder(folder: Path) -> Path | None:
    for candidate in (folder / "data", folder):
        if candidate.is_dir():
            names = (_FILE.match(path.stem) for path in candidate.iterdir())
            if any(match and match[2] == "flow" for match in names):
                return candidate
    return None


def _records(data: Path) -> list[Record]:
    found: dict[str, dict[str, Path]] = {}
    for path in data.iterdir():
        match = _FILE.match(path.stem)
        kinds = FLOW_SUFFIXES if match and match[2] == "flow" else IMAGE_SUFFIXES
        if match and path.suffix.lower() in kinds:
            found.setdefault(match[1], {})[match[2]] = path
    return [
        Record(
            name=number,
            image1=files.get("img1", data / f"{number}_img1.ppm"),
            image2=files.get("img2", data / f"{number}_img2.ppm"),
            flow=files.get("flow", data / f"{number}_flow.flo"),
            dataset="chairs",
            scene=number,
        )
        for number, files in sorted(found.items(), key=lambda item: int(item[0]))
    ]


def _split_file(home: Path, given: str | os.PathLike[str] | None) -> Path:
    if given is not None:
        if not Path(given).is_file():
            raise FileError(f"{given}: there is no such split file")
        return Path(given)
    folders = (home, home / "data", home.parent)
    for path in (folder / name for folder in folders for name in SPLIT_FILES):
        if path.is_file():
            return path
    raise FileError(
        f"{home}: expected the split file {home / SPLIT_FILES[0]} (RAFT calls it "
        f"{SPLIT_FILES[1]}); fetch it, name it with split_file, or use split='all'"
    )


def _read_split(path: Path) -> list[str]:
    lines = path.read_text(encoding="ascii", errors="replace").split()
    for number, line in enumerate(lines, start=1):
        if line not in ("1", "2"):
            raise FileError(f"{path}: line {number} is {line[:20]!r}, wanted 1 (train) or 2 (val)")
    return lines


def _line(path: Path, lines: list[str], number: int) -> str:
    if not 1 <= number <= len(lines):
        raise FileError(f"{path}: has {len(lines)} lines, but there is a pair numbered {number}")
    return lines[number - 1]

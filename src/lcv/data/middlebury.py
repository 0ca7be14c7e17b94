"""Middlebury: <scene>/frame10.png, frame11.png, flow10.flo, together or in the official folders."""

from __future__ import annotations

import os
from pathlib import Path

from lcv.data.dataset import Dataset, Part, Survey, assemble, choose
from lcv.data.layouts import find_home, has_any, subfolders
from lcv.data.record import Record
from lcv.errors import FileError

NAMES = ("Middlebury", "middlebury")
SPLITS = ("training", "test")
TOTAL = 8
_OFFICIAL = {"training": ("other-data", "other-color-allframes"), "test": ("eval-data",)}
_FLOWS = "other-gt-flow"


def middlebury(
    root: str | os.PathLike[str], split: str = "training", *, strict: bool = True
) -> Dataset:
    """Middlebury's pairs (frame 10, frame 11), one a scene, in alphabetical order.

    Found are one folder a scene that holds frames and flow together, and the official
    other-data/<scene> with other-gt-flow/<scene>.
    split: "training" (8 scenes with truth; scenes without are left out) or "test", the
        official eval-data without truth.
    """
    choose("middlebury", "split", split, SPLITS)
    home = find_home(root, "Middlebury", NAMES, is_home, "other-data")
    folder = next((home / n for n in _OFFICIAL[split] if (home / n).is_dir()), home)
    if split == "test" and folder == home:
        raise FileError(f"{home / _OFFICIAL[split][0]}: expected this folder, with the test scenes")
    flows = home / _FLOWS if (home / _FLOWS).is_dir() else folder
    scenes = subfolders(folder) + (subfolders(flows) if split == "training" else [])
    records = []
    for name in sorted({path.name for path in scenes}):
        flow = flows / name / "flow10.flo"
        if split == "test" or flow.is_file():
            records.append(
                Record(
                    name=name,
                    image1=folder / name / "frame10.png",
                    image2=folder / name / "frame11.png",
                    flow=flow if split == "training" else None,
                    dataset="middlebury",
                    scene=name,
                )
            )
    return assemble(f"middlebury-{split}", home, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether this folder has official folders, or scenes with frames and flow together."""
    official = has_any(folder, *_OFFICIAL["training"], *_OFFICIAL["test"], _FLOWS)
    return official or any((path / "flow10.flo").is_file() for path in subfolders(folder))


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    parts = [Part("training", middlebury(folder, strict=False), TOTAL)]
    if (folder / _OFFICIAL["test"][0]).is_dir():
        parts.append(Part("test", middlebury(folder, "test", strict=False)))
    return Survey("Middlebury", folder, tuple(parts))

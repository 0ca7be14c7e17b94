"""Where a dataset lies: in the folder given, or in a child of it under one of the usual names.

RAFT's README keeps datasets/Sintel, datasets/KITTI, datasets/FlyingChairs_release/data,
datasets/FlyingThings3D and datasets/HD1K; torchvision keeps root/Sintel, root/KittiFlow,
root/FlyingChairs, root/FlyingThings3D and root/hd1k. Both are found, and so is a folder that is
the dataset itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from lcv.errors import FileError

IMAGE_SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp", ".webp", ".tif", ".tiff", ".avif", ".heic")
)
FLOW_SUFFIXES = frozenset((".flo", ".pfm", ".flo5", ".npy", ".npz", ".png"))
VIDEO_SUFFIXES = frozenset((".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"))


def find_home(
    root: str | os.PathLike[str],
    title: str,
    names: tuple[str, ...],
    is_home: Callable[[Path], bool],
    expected: str,
) -> Path:
    """`root`, or its first child of a usual name, for which `is_home` holds.

    expected: the folder, relative to the dataset's own, that the message of failure names.
    """
    root = Path(root)
    if not root.is_dir():
        raise FileError(f"{root}: there is no such folder; wanted the folder of {title}")
    for folder in (root, *(root / name for name in names)):
        if folder.is_dir() and is_home(folder):
            return folder
    children = " or ".join(str(root / name / expected) for name in names[:2])
    raise FileError(f"{root}: no {title} here; expected the folder {root / expected} or {children}")


def has_any(folder: Path, *parts: str) -> bool:
    """Whether one of these subfolders is there."""
    return any((folder / part).is_dir() for part in parts)


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, hidden ones left out, in natural order."""
    if not folder.is_dir():
        return []
    return sorted(
        (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")),
        key=natural,
    )


def files_in(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    """The files of these kinds in a folder, hidden ones left out, in natural order."""
    if not folder.is_dir():
        return []
    return sorted(
        (
            path
            for path in folder.iterdir()
            if path.suffix.lower() in suffixes and not path.name.startswith(".") and path.is_file()
        ),
        key=natural,
    )


def natural(path: Path) -> tuple[tuple[int, int, str], ...]:
    """A sorting key in which frame2 comes before frame10."""
    words = re.split(r"(\d+)", path.name)
    return tuple((0, int(w), w) if w.isdecimal() else (1, 0, w) for w in words if w)


def beside(folder: Path, name: str) -> Path | None:
    """`folder/name` if the folder is there (a set of maps may be absent as a whole), else None."""
    return folder / name if folder.is_dir() else None

"""Which datasets a folder holds, told from its layout."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lcv.data import chairs, frames, hd1k, kitti, listfile, middlebury, sintel, spring, stereo
from lcv.data import things as things3d
from lcv.data.dataset import Survey
from lcv.data.layouts import VIDEO_SUFFIXES, subfolders
from lcv.errors import FileError


class Kind(NamedTuple):
    """How a dataset is told from its folder, and how its records are then listed."""

    is_home: Callable[[Path], bool]
    survey: Callable[[Path], Survey]


DATASETS = {
    "FlyingChairs": Kind(chairs.is_home, chairs.survey),
    "FlyingThings3D": Kind(things3d.is_home, things3d.survey),
    "Sintel": Kind(sintel.is_home, sintel.survey),
    "KITTI 2015": Kind(kitti.is_home, kitti.survey),
    "KITTI 2012": Kind(partial(kitti.is_home, year=2012), partial(kitti.survey, year=2012)),
    "HD1K": Kind(hd1k.is_home, hd1k.survey),
    "Middlebury": Kind(middlebury.is_home, middlebury.survey),
    "Middlebury stereo": Kind(stereo.is_home, stereo.survey),
    "Spring": Kind(spring.is_home, spring.survey),
    "a list of pairs": Kind(listfile.is_home, listfile.survey),
}
# What has no truth has no marks either, and is looked for when nothing else was found.
WITHOUT_TRUTH = {
    "pairs": Kind(frames.has_pairs, partial(frames.survey, kind="pairs")),
    "frames": Kind(frames.has_frames, partial(frames.survey, kind="frames")),
    "videos": Kind(frames.has_videos, partial(frames.survey, kind="videos")),
}


def recognise(root: str | os.PathLike[str]) -> list[tuple[Path, Kind]]:
    """The datasets of a folder: the one it is, or else those that its subfolders are.

    root may also be a list file or a video.
    """
    root = Path(root)
    if root.is_file():
        if listfile.is_home(root):
            return [(root, DATASETS["a list of pairs"])]
        if root.suffix.lower() in VIDEO_SUFFIXES:
            return [(root, WITHOUT_TRUTH["videos"])]
        raise FileError(f"{root}: neither a list of pairs nor a video; wanted those, or a folder")
    if not root.is_dir():
        raise FileError(
            f"{root}: there is no such file or folder; wanted a dataset, or a list of pairs"
        )
    here = _first(root, DATASETS)
    if here is not None:
        return [(root, here)]
    # RAFT keeps its datasets in datasets/ and torchvision in root/; the children tell.
    children = [(child, _first(child, DATASETS)) for child in subfolders(root)]
    if any(kind for _, kind in children):
        found = [(child, kind or _first(child, WITHOUT_TRUTH)) for child, kind in children]
        return [(child, kind) for child, kind in found if kind is not None]
    here = _first(root, WITHOUT_TRUTH)
    if here is None:
        raise FileError(
            f"{root}: no dataset is recognised in this folder or in those inside it; known are "
            f"{', '.join(DATASETS)}, and frames, pairs or videos without truth"
        )
    return [(root, here)]


def _first(folder: Path, kinds: dict[str, Kind]) -> Kind | None:
    return next((kind for kind in kinds.values() if kind.is_home(folder)), None)

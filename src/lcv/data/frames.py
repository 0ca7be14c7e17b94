"""Frames without truth: a folder of sequences, of pairs, or of videos."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from lcv.data.dataset import Dataset, Part, Survey, assemble
from lcv.data.layouts import IMAGE_SUFFIXES, VIDEO_SUFFIXES, files_in, subfolders
from lcv.data.record import FrameRef, Record
from lcv.errors import ArgumentError, FileError

PARTS = ("all", "train", "held-out")
# The endings by which two files are known as the first and second frame of one pair.
PAIR_ENDINGS = (("_img1", "_img2"), ("_10", "_11"), ("_1", "_2"), ("_0", "_1"), ("_a", "_b"))
_NUMBERED = re.compile(r"(.*?)(\d+)$")


def frames(root: str | os.PathLike[str], part: str = "all") -> Dataset:
    """Neighbouring frames of a folder in natural order, or of each of its folders in turn.

    A gap in the numbering (frame 7 after frame 5) is not bridged: the two make no pair.
    part: "all", or "train" or "held-out" (see `part_of`).
    """
    home = _folder(root)
    records = [r for folder in (home, *subfolders(home)) for r in _consecutive(folder, home)]
    if not records:
        raise FileError(f"{home}: expected at least two images in this folder, or in one inside it")
    return assemble("frames", home, part_of(records, part, home), strict=True)


def pairs(root: str | os.PathLike[str]) -> Dataset:
    """Pairs of a folder: names that differ only in their ending, or folders of two images.

    Endings: _img1/_img2, _10/_11, _1/_2, _0/_1 and _a/_b, one kind in a folder.
    """
    home = _folder(root)
    records = _by_endings(home)
    for folder in subfolders(home):
        images = files_in(folder, IMAGE_SUFFIXES)
        if len(images) == 2:
            records.append(
                Record(folder.name, images[0], images[1], dataset="pairs", scene=folder.name)
            )
    if not records:
        endings = ", ".join("/".join(kind) for kind in PAIR_ENDINGS)
        raise FileError(
            f"{home}: expected pairs in this folder, with names ending in {endings}, or folders "
            f"of exactly two images"
        )
    return assemble("pairs", home, records, strict=True)


def videos(root: str | os.PathLike[str], part: str = "all") -> Dataset:
    """Neighbouring frames of every video in a folder, or of the one video given.

    The number of frames is the one a video declares; one that declares none is decoded.
    part: "all", or "train" or "held-out" (see `part_of`).
    """
    path = Path(root)
    found = [path] if path.is_file() else files_in(_folder(root), VIDEO_SUFFIXES)
    if not found:
        raise FileError(
            f"{path}: expected videos in this folder ({', '.join(sorted(VIDEO_SUFFIXES))})"
        )
    records = [
        Record(
            name=f"{video.stem}/{index:06d}",
            image1=FrameRef(video, index),
            image2=FrameRef(video, index + 1),
            dataset="videos",
            scene=video.stem,
        )
        for video in found
        for index in range(_length(video) - 1)
    ]
    return assemble("videos", path, part_of(records, part, path), strict=True)


def part_of(records: Sequence[Record], part: str, home: Path) -> list[Record]:
    """All pairs, or those for training, or those held out: the last fifth of every scene.

    The pair between the two parts belongs to neither, so that they share no frame. A scene of one
    or two pairs is trained on whole.
    """
    if part not in PARTS:
        raise ArgumentError(f"part is {part!r}, wanted one of {', '.join(PARTS)}")
    chosen = []
    for _, scene in groupby(records, key=lambda record: record.scene):
        own = list(scene)
        held = -(-len(own) // 5) if len(own) > 2 else 0
        ends = {"all": own, "train": own[: len(own) - held - 1] if held else own}
        chosen += ends.get(part, own[len(own) - held :])
    if not chosen:
        raise FileError(f"{home}: no pair is held out; wanted a scene of at least four frames")
    return chosen


def has_frames(folder: Path) -> bool:
    """Whether this folder, or one inside it, has at least two images."""
    return any(len(files_in(f, IMAGE_SUFFIXES)) > 1 for f in (folder, *subfolders(folder)))


def has_pairs(folder: Path) -> bool:
    """Whether every image here belongs to a pair by its ending, or sits in a folder of two."""
    images = files_in(folder, IMAGE_SUFFIXES)
    inside = [files_in(f, IMAGE_SUFFIXES) for f in subfolders(folder)]
    if images:
        # Frames 1 and 2 alone would pass for a pair with their own name; numbers run on.
        return 2 * len(_by_endings(folder)) == len(images)
    return bool(inside) and all(len(found) == 2 for found in inside)


def has_videos(folder: Path) -> bool:
    """Whether this folder has videos."""
    return bool(files_in(folder, VIDEO_SUFFIXES))


def survey(folder: Path, kind: str) -> Survey:
    """What `lcv data check` looks at. kind: frames, pairs or videos"""
    listed = {"frames": frames, "pairs": pairs, "videos": videos}[kind](folder)
    return Survey(f"{kind} without truth", folder, (Part(kind, listed),))


def _folder(root: str | os.PathLike[str]) -> Path:
    home = Path(root)
    if not home.is_dir():
        raise FileError(f"{home}: there is no such folder; wanted one of frames")
    return home


def _length(video: Path) -> int:
    from lcv.data.formats.video import read_video, video_info

    declared = video_info(video).frames
    return sum(1 for _ in read_video(video)) if declared is None else declared


def _consecutive(folder: Path, home: Path) -> list[Record]:
    scene = "" if folder == home else folder.name
    images = files_in(folder, IMAGE_SUFFIXES)
    return [
        Record(
            name=f"{scene}/{first.stem}" if scene else first.stem,
            image1=first,
            image2=second,
            dataset="frames",
            scene=scene or home.name,
        )
        for first, second in pairwise(images)
        if not _gap(first.stem, second.stem)
    ]


def _gap(first: str, second: str) -> bool:
    """Whether two neighbouring names are not neighbouring frames: a number is left out, or what
    stands before the number changes, as from one scene of KITTI's multi-view set to the next."""
    a, b = _NUMBERED.match(first), _NUMBERED.match(second)
    return bool(a and b and (a[1] != b[1] or int(b[2]) - int(a[2]) > 1))


def _by_endings(home: Path) -> list[Record]:
    images = {path.stem: path for path in files_in(home, IMAGE_SUFFIXES)}
    for first, second in PAIR_ENDINGS:
        stems = [s.removesuffix(first) for s in images if s.endswith(first)]
        found = [s for s in stems if s + second in images]
        if found:
            return [
                Record(s, images[s + first], images[s + second], dataset="pairs", scene=s)
                for s in found
            ]
    return []

"""Spring: train/0001/frame_left/frame_left_0001.png, flow_FW_left/flow_FW_left_0001.flo5."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from lcv.data.dataset import Dataset, Holdout, Part, Survey, assemble, choose
from lcv.data.layouts import IMAGE_SUFFIXES, files_in, find_home, subfolders
from lcv.data.record import Record
from lcv.errors import FileError

NAMES = ("spring", "Spring", "spring/spring")
SPLITS = ("train", "test")
CAMERAS = ("left", "right")
DIRECTIONS = ("FW", "BW")
# 5000 and 1000 frames in 37 and 10 sequences, so many pairs a camera and direction.
TOTALS = {"train": 4963, "test": 990}
_NUMBER = re.compile(r".*_(\d+)$")


def spring(
    root: str | os.PathLike[str],
    split: str = "train",
    cameras: Sequence[str] = ("left",),
    directions: Sequence[str] = ("FW",),
    *,
    strict: bool = True,
) -> Dataset:
    """Spring's pairs: FW is (frame t, t+1) with flow_FW of t, BW is (t, t−1) with flow_BW of t.

    Frames are 1920×1080; the truth is stored at 3840×2160 in pixels of the frames, and every
    second row and column of it is read. It needs h5py (`pip install lcv-flow[spring]`).
    """
    choose("spring", "split", split, SPLITS)
    for camera in cameras:
        choose("spring", "cameras", camera, CAMERAS)
    for direction in directions:
        choose("spring", "directions", direction, DIRECTIONS)
    home = find_home(root, "Spring", NAMES, is_home, "train/0001/frame_left")
    if not (home / split).is_dir():
        raise FileError(f"{home / split}: expected this folder, with one folder a scene in it")
    records = [
        record
        for camera in cameras
        for direction in directions
        for folder in subfolders(home / split)
        for record in _records(folder, camera, direction, split == "train")
    ]
    return assemble(f"spring-{split}", home / split, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether this folder has scenes of Spring's."""
    return any(
        (scene / f"frame_{camera}").is_dir()
        for split in SPLITS
        for scene in subfolders(folder / split)
        for camera in CAMERAS
    )


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    parts = []
    for split in SPLITS:
        for camera in CAMERAS:
            for direction in DIRECTIONS if split == "train" else ("FW",):
                if any((s / f"frame_{camera}").is_dir() for s in subfolders(folder / split)):
                    dataset = spring(folder, split, (camera,), (direction,), strict=False)
                    if len(dataset):
                        label = f"{split}/{camera}/{direction}"
                        parts.append(Part(label, dataset, TOTALS[split]))
    train = [part.dataset for part in parts if part.label.startswith("train")]
    test = [part.dataset for part in parts if part.label.startswith("test")]
    holdouts = [Holdout("train against test", a, b) for a in train for b in test]
    return Survey("Spring", folder, tuple(parts), tuple(holdouts))


def _records(scene: Path, camera: str, direction: str, with_truth: bool) -> list[Record]:
    frames = scene / f"frame_{camera}"
    flows = scene / f"flow_{direction}_{camera}"
    step = 1 if direction == "FW" else -1
    if with_truth:
        numbers = _numbers(files_in(flows, frozenset((".flo5",))))
    else:
        there = _numbers(files_in(frames, IMAGE_SUFFIXES))
        numbers = [n for n in there if n + step in there]
    other = "BW" if direction == "FW" else "FW"
    reverse = scene / f"flow_{other}_{camera}"
    return [
        Record(
            name=f"{scene.name}/{camera}/{direction}/{number:04d}",
            image1=frames / f"frame_{camera}_{number:04d}.png",
            image2=frames / f"frame_{camera}_{number + step:04d}.png",
            flow=flows / f"flow_{direction}_{camera}_{number:04d}.flo5" if with_truth else None,
            backward=reverse / f"flow_{other}_{camera}_{number + step:04d}.flo5"
            if with_truth and reverse.is_dir()
            else None,
            dataset="spring",
            scene=scene.name,
            step=2,
        )
        for number in numbers
    ]


def _numbers(paths: list[Path]) -> list[int]:
    return [int(match[1]) for path in paths if (match := _NUMBER.match(path.stem))]

"""FlyingThings3D, 960×540: the full set and the subset, both passes, cameras and directions."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from lcv.data.dataset import Dataset, Holdout, Part, Survey, assemble, choose
from lcv.data.layouts import beside, files_in, find_home, has_any, subfolders
from lcv.data.record import Record
from lcv.errors import FileError

NAMES = ("FlyingThings3D", "FlyingThings3D_subset", "things")
SPLITS = ("train", "test")
PASSES = ("clean", "final")
CAMERAS = ("left", "right")
DIRECTIONS = ("future", "past")
# Sequences times 9 pairs, a pass, camera and direction of the full set.
TOTALS = {"train": 2239 * 9, "test": 437 * 9}
_FLOW = re.compile(r"OpticalFlowInto(?:Future|Past)_(\d+)_[LR]$")
_FLOW_SUFFIXES = frozenset((".pfm", ".flo"))


def things(
    root: str | os.PathLike[str],
    split: str = "train",
    passes: Sequence[str] = ("clean",),
    cameras: Sequence[str] = ("left",),
    directions: Sequence[str] = DIRECTIONS,
    *,
    exclude: Collection[str] = (),
    strict: bool = True,
) -> Dataset:
    """Pairs (frame t, t+1) with the flow into the future of t, (t, t−1) with that into the past.

    The defaults are RAFT's choice: 40,302 pairs. The full set is recognised by its folder
    optical_flow, the subset by train/flow; the subset's val counts as "test".
    exclude: names of records to leave out; VCN, for one, trains without some frames.

    A flow whose second frame lies beyond its sequence makes no pair.
    """
    choose("things", "split", split, SPLITS)
    for argument, values, known in (
        ("passes", passes, PASSES),
        ("cameras", cameras, CAMERAS),
        ("directions", directions, DIRECTIONS),
    ):
        for value in values:
            choose("things", argument, value, known)
    home = find_home(root, "FlyingThings3D", NAMES, is_home, "optical_flow")
    list_records = _full if has_any(home, "optical_flow") else _subset
    records = [
        record
        for name in passes
        for camera in cameras
        for direction in directions
        for record in list_records(home, split, name, camera, direction)
    ]
    return assemble(f"things-{split}", home, records, strict=strict).without(exclude)


def is_home(folder: Path) -> bool:
    """Whether this folder has the full set or the subset."""
    return has_any(folder, "optical_flow/TRAIN", "optical_flow/TEST", "train/flow", "val/flow")


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    full = has_any(folder, "optical_flow")
    parts: dict[str, list[Part]] = {"train": [], "test": []}
    for split in SPLITS:
        for name in PASSES:
            if not _frames(folder, split, name, full).is_dir():
                continue
            for camera in CAMERAS:
                for direction in DIRECTIONS:
                    dataset = things(folder, split, (name,), (camera,), (direction,), strict=False)
                    if len(dataset):
                        label = f"{split}/{name}/{camera}/into_{direction}"
                        parts[split].append(Part(label, dataset, TOTALS[split] if full else None))
    holdouts = []
    if parts["train"] and parts["test"]:
        train, test = (
            Dataset(split, tuple(r for part in parts[split] for r in part.dataset))
            for split in SPLITS
        )
        holdouts.append(Holdout("train against test", train, test))
    kind = "FlyingThings3D" if full else "FlyingThings3D subset"
    return Survey(kind, folder, (*parts["train"], *parts["test"]), tuple(holdouts))


def _frames(home: Path, split: str, pass_name: str, full: bool) -> Path:
    if full:
        return home / f"frames_{pass_name}pass" / split.upper()
    return home / _subset_split(split) / f"image_{pass_name}"


def _subset_split(split: str) -> str:
    return "train" if split == "train" else "val"


def _full(home: Path, split: str, pass_name: str, camera: str, direction: str) -> list[Record]:
    frames = _required(_frames(home, split, pass_name, True))
    flows = _required(home / "optical_flow" / split.upper())
    step = 1 if direction == "future" else -1
    side = camera[0].upper()
    records = []
    for letter in subfolders(flows):
        for sequence in subfolders(letter):
            scene = f"{letter.name}/{sequence.name}"
            images = frames / scene / camera
            found = {
                int(match[1]): path
                for path in files_in(sequence / f"into_{direction}" / camera, _FLOW_SUFFIXES)
                if (match := _FLOW.match(path.stem))
            }
            pictures = files_in(images, frozenset((".png", ".webp")))
            there = {int(p.stem) for p in pictures if p.stem.isdigit()} | set(found)
            suffix = next((p.suffix for p in found.values()), ".pfm")
            reverse = sequence / f"into_{_opposite(direction)}" / camera
            word = _opposite(direction).capitalize()
            records += [
                Record(
                    name=f"{pass_name}/{split}/{scene}/{camera}/into_{direction}/{number:04d}",
                    image1=images / f"{number:04d}.png",
                    image2=images / f"{number + step:04d}.png",
                    flow=path,
                    backward=beside(
                        reverse, f"OpticalFlowInto{word}_{number + step:04d}_{side}{suffix}"
                    ),
                    dataset=f"things-{pass_name}",
                    scene=scene,
                )
                for number, path in sorted(found.items())
                if number + step in there
            ]
    return records


def _subset(home: Path, split: str, pass_name: str, camera: str, direction: str) -> list[Record]:
    top = home / _subset_split(split)
    images = _required(_frames(home, split, pass_name, False)) / camera
    flows = _required(top / "flow") / camera / f"into_{direction}"
    reverse = top / "flow" / camera / f"into_{_opposite(direction)}"
    step = 1 if direction == "future" else -1
    there = {p.stem for p in files_in(images, frozenset((".png", ".webp")))}
    back = {p.stem for p in files_in(reverse, _FLOW_SUFFIXES)}
    records = []
    for path in files_in(flows, _FLOW_SUFFIXES):
        if not path.stem.isdigit():
            continue
        second = f"{int(path.stem) + step:07d}"
        if second not in there:
            continue
        records.append(
            Record(
                name=f"{pass_name}/{split}/{camera}/into_{direction}/{path.stem}",
                image1=images / f"{path.stem}.png",
                image2=images / f"{second}.png",
                flow=path,
                backward=reverse / f"{second}{path.suffix}" if second in back else None,
                occlusions=beside(
                    top / "flow_occlusions" / camera / f"into_{direction}", f"{path.stem}.png"
                ),
                dataset=f"things-{pass_name}",
                scene=split,
            )
        )
    return records


def _opposite(direction: str) -> str:
    return "past" if direction == "future" else "future"


def _required(folder: Path) -> Path:
    if not folder.is_dir():
        raise FileError(f"{folder}: expected this folder of FlyingThings3D; it is not there")
    return folder

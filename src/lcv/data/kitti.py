"""KITTI 2012 and 2015: image_2 or colored_0/000000_10.png and _11.png, flow_occ, flow_noc, obj_map."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path

from lcv.data.dataset import Dataset, Holdout, Part, Survey, assemble, choose
from lcv.data.layouts import IMAGE_SUFFIXES, beside, files_in, find_home, has_any
from lcv.data.record import Record
from lcv.errors import ArgumentError

NAMES = {
    2015: ("KITTI", "KittiFlow", "KITTI-2015", "KITTI2015", "kitti2015", "data_scene_flow"),
    2012: ("KITTI-2012", "KITTI2012", "kitti2012", "KITTI12", "data_stereo_flow"),
}
# The frames of 2012 come in colour and in grey; colour is taken where both are there.
FRAMES = {2015: ("image_2",), 2012: ("colored_0", "image_0")}
SPLITS = ("training", "testing")
TOTALS = {2015: {"training": 200, "testing": 200}, 2012: {"training": 194, "testing": 195}}
_NAME = re.compile(r"(\d{6})_1[01]$")
SCENES = ("all", "vcn-train", "vcn-val", "paper-train", "paper-val")


def kitti(
    root: str | os.PathLike[str],
    split: str = "training",
    scenes: str = "all",
    *,
    year: int = 2015,
    truth: str = "occ",
    seed: int = 0,
    strict: bool = True,
) -> Dataset:
    """KITTI's pairs (frame 10, frame 11), one a scene; sparse truth.

    split: "training" (200 pairs in 2015, 194 in 2012) or "testing" (200, 195; no truth).
    scenes: "vcn-val" is every fifth scene (0, 5, …, 195), "vcn-train" the others; "paper-val" is
        a random fifth of the full list for this `seed`, "paper-train" the other four. A scene's
        side does not depend on which others are present.
    truth: "occ" is the flow of all pixels, with flow_noc beside it to tell the occluded ones;
        "noc" is the flow of the visible ones alone.
    """
    choose("kitti", "split", split, SPLITS)
    choose("kitti", "scenes", scenes, SCENES)
    choose("kitti", "truth", truth, ("occ", "noc"))
    if year not in NAMES:
        raise ArgumentError(f"kitti: year is {year!r}, wanted 2012 or 2015")
    if split == "testing" and scenes != "all":
        raise ArgumentError(f"kitti: scenes={scenes!r} divides the training set, not {split!r}")
    home = find_home(
        root,
        f"KITTI {year}",
        NAMES[year],
        partial(is_home, year=year),
        f"training/{FRAMES[year][0]}",
    )
    records = _records(home / split, year, truth)
    if scenes != "all":
        held_out = validation_scenes(scenes.partition("-")[0], year, seed)
        wanted = scenes.endswith("-val")
        records = [r for r in records if (int(r.scene) in held_out) == wanted]
    title = f"kitti{year}-{split}" if scenes == "all" else f"kitti{year}-{scenes}"
    return assemble(title, home / split, records, strict=strict)


def validation_scenes(name: str, year: int = 2015, seed: int = 0) -> frozenset[int]:
    """The scene numbers that the split "vcn" or "paper" holds out of training.

    "paper": scenes in the order of sha256("seed:scene"), the first fifth of them, so that the
    choice is the same under every version of every library.
    """
    total = TOTALS[year]["training"]
    if name == "vcn":
        return frozenset(range(0, total, 5))
    order = sorted(range(total), key=lambda s: hashlib.sha256(f"{seed}:{s}".encode()).digest())
    return frozenset(order[: total // 5])


def is_home(folder: Path, year: int = 2015) -> bool:
    """Whether this folder has frames of that year; those of 2012 in colour or in grey."""
    return has_any(folder, *(f"{split}/{name}" for split in SPLITS for name in FRAMES[year]))


def survey(folder: Path, year: int = 2015) -> Survey:
    """What `lcv data check` looks at."""
    here = [split for split in SPLITS if (folder / split).is_dir()]
    sets = {split: kitti(folder, split, year=year, strict=False) for split in here}
    parts = tuple(Part(split, sets[split], TOTALS[year][split]) for split in here)
    holdouts = []
    if "training" in here:
        for name in ("vcn", "paper"):
            pair = [
                kitti(folder, scenes=f"{name}-{side}", year=year, strict=False)
                for side in ("train", "val")
            ]
            holdouts.append(Holdout(f"the split {name!r}", *pair))
    if len(here) == 2:
        holdouts.append(Holdout("training against testing", sets["training"], sets["testing"]))
    return Survey(f"KITTI {year}", folder, parts, tuple(holdouts))


def _records(top: Path, year: int, truth: str) -> list[Record]:
    folder = next((top / n for n in FRAMES[year] if (top / n).is_dir()), top / FRAMES[year][0])
    flows = top / f"flow_{truth}"
    with_truth = flows.is_dir()
    named = files_in(flows if with_truth else folder, IMAGE_SUFFIXES)
    scenes = {match[1] for path in named if (match := _NAME.match(path.stem))}
    return [
        Record(
            name=f"{scene}_10",
            image1=folder / f"{scene}_10.png",
            image2=folder / f"{scene}_11.png",
            flow=flows / f"{scene}_10.png" if with_truth else None,
            noc=beside(top / "flow_noc", f"{scene}_10.png") if truth == "occ" else None,
            objects=beside(top / "obj_map", f"{scene}_10.png"),
            dataset=f"kitti{year}",
            scene=scene,
            sparse=True,
        )
        for scene in sorted(scenes)
    ]

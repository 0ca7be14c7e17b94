"""MPI Sintel: training/{clean,final,flow,occlusions,invalid}/<scene>/frame_0001.*, 1024×436."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from lcv.data.dataset import Dataset, Holdout, Part, Survey, assemble, choose
from lcv.data.layouts import IMAGE_SUFFIXES, beside, files_in, find_home, has_any, subfolders
from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError

NAMES = ("Sintel", "MPI-Sintel", "MPI-Sintel-complete", "sintel")
SPLITS = ("training", "test")
PASSES = ("clean", "final")
TOTALS = {"training": 1041, "test": 552}
VCN_VALIDATION = ("ambush_2", "bamboo_2", "cave_2", "market_2", "shaman_2", "temple_2")
SCENE_SPLITS = ("vcn-train", "vcn-val")
_FRAME = re.compile(r"(.*?)(\d+)$")


def sintel(
    root: str | os.PathLike[str],
    split: str = "training",
    passes: Sequence[str] = ("clean",),
    scenes: Sequence[str] | str | None = None,
    *,
    strict: bool = True,
) -> Dataset:
    """Sintel's pairs (frame t, frame t+1), scene by scene, pass by pass.

    split: "training" (1041 pairs a pass) or "test" (552, without truth).
    passes: "clean", "final" or both, in the order given.
    scenes: names of scenes; or a split by its name. "vcn-val" is every third pair of the scenes
        ambush_2, bamboo_2, cave_2, market_2, shaman_2 and temple_2, in each pass from its first
        pair on; "vcn-train" is all the other scenes.
    """
    choose("sintel", "split", split, SPLITS)
    if isinstance(passes, str):
        passes = (passes,)
    for name in passes:
        choose("sintel", "passes", name, PASSES)
    if isinstance(scenes, str):
        choose("sintel", "scenes", scenes, SCENE_SPLITS)
    home = find_home(root, "Sintel", NAMES, is_home, "training/clean")
    records: list[Record] = []
    for name in passes:
        folder = home / split / name
        if not folder.is_dir():
            raise FileError(f"{folder}: expected this folder, with one folder a scene in it")
        found = _records(home / split, name)
        if isinstance(scenes, str):
            held_out = [r for r in found if r.scene in VCN_VALIDATION]
            others = [r for r in found if r.scene not in VCN_VALIDATION]
            records += held_out[::3] if scenes == "vcn-val" else others
        else:
            records += [r for r in found if scenes is None or r.scene in scenes]
            _refuse_unknown(folder, scenes)
    title = f"sintel-{split}" if scenes is None else f"sintel-{split}-{_label(scenes)}"
    return assemble(title, home / split, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether this folder has Sintel's training or test frames."""
    return has_any(folder, *(f"{split}/{name}" for split in SPLITS for name in PASSES))


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at. Procedural pairs are written in this layout, of any number."""
    procedural = (folder / "recipe.json").is_file()
    totals = {} if procedural else TOTALS
    parts: list[Part] = []
    holdouts: list[Holdout] = []
    for split in SPLITS:
        for name in PASSES:
            if (folder / split / name).is_dir():
                dataset = sintel(folder, split, (name,), strict=False)
                parts.append(Part(f"{split}/{name}", dataset, totals.get(split)))
    for name in PASSES:
        if (folder / "training" / name).is_dir():
            train, val = (
                sintel(folder, "training", (name,), scenes, strict=False) for scenes in SCENE_SPLITS
            )
            holdouts.append(Holdout(f"VCN's scenes, {name}", train, val))
        if all((folder / split / name).is_dir() for split in SPLITS):
            pair = [sintel(folder, split, (name,), strict=False) for split in SPLITS]
            holdouts.append(Holdout(f"training against test, {name}", *pair))
    kind = "procedural pairs" if procedural else "Sintel"
    return Survey(kind, folder, tuple(parts), tuple(holdouts))


def _records(top: Path, pass_name: str) -> list[Record]:
    records = []
    with_truth = (top / "flow").is_dir()
    for folder in subfolders(top / pass_name):
        frames = {p.stem: p for p in files_in(folder, IMAGE_SUFFIXES) if _FRAME.match(p.stem)}
        flows = files_in(top / "flow" / folder.name, frozenset((".flo",)))
        # With truth every flow file makes a pair, so that a lost frame is noticed, not skipped.
        firsts = [p.stem for p in flows] if with_truth else list(frames)[:-1]
        for stem in firsts:
            after = _next(stem)
            records.append(
                Record(
                    name=f"{pass_name}/{folder.name}/{stem}",
                    image1=frames.get(stem, folder / f"{stem}.png"),
                    image2=frames.get(after, folder / f"{after}.png"),
                    flow=top / "flow" / folder.name / f"{stem}.flo" if with_truth else None,
                    occlusions=beside(top / "occlusions" / folder.name, f"{stem}.png"),
                    invalid=beside(top / "invalid" / folder.name, f"{stem}.png"),
                    dataset=f"sintel-{pass_name}",
                    scene=folder.name,
                )
            )
    return records


def _next(stem: str) -> str:
    match = _FRAME.match(stem)
    if match is None:
        raise FileError(f"{stem}.flo: not a name of Sintel's; wanted frame_0001.flo and so on")
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"


def _refuse_unknown(folder: Path, scenes: Sequence[str] | None) -> None:
    there = [path.name for path in subfolders(folder)]
    for scene in scenes or ():
        if scene not in there:
            raise ArgumentError(f"sintel: scene {scene!r} is not in {folder}; it has {there}")


def _label(scenes: Sequence[str] | str) -> str:
    return scenes if isinstance(scenes, str) else "+".join(scenes)

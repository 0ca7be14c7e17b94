"""HD1K: hd1k_input/image_2/<sequence>_<frame>.png, hd1k_flow_gt/flow_occ/<same>.png, 2560×1080."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lcv.data.dataset import Dataset, Part, Survey, assemble, choose
from lcv.data.layouts import IMAGE_SUFFIXES, files_in, find_home, has_any
from lcv.data.record import Record

NAMES = ("HD1K", "hd1k", "hd1k_full_package")
SPLITS = ("training", "testing")
TOTAL = 1047
_NAME = re.compile(r"(\d{6})_(\d{4})$")
_FRAMES = {"training": "hd1k_input/image_2", "testing": "hd1k_challenge/image_2"}
_FLOW = "hd1k_flow_gt/flow_occ"


def hd1k(root: str | os.PathLike[str], split: str = "training", *, strict: bool = True) -> Dataset:
    """HD1K's pairs (frame t, frame t+1) of each sequence; sparse truth.

    split: "training" (36 sequences, 1047 pairs: the flow of a sequence's last frame has no
        second frame and is left out, as in RAFT) or "testing", without truth.
    """
    choose("hd1k", "split", split, SPLITS)
    home = find_home(root, "HD1K", NAMES, is_home, _FRAMES["training"])
    folder, flows = home / _FRAMES[split], home / _FLOW
    frames = _numbers(folder)
    truths = _numbers(flows) if split == "training" else {}
    records = []
    for sequence in sorted(frames | truths):
        there = frames.get(sequence, set())
        # The last number of either folder ends the sequence. Before it every flow makes a pair,
        # so that a lost frame is noticed and not skipped.
        firsts = truths.get(sequence, set()) if split == "training" else there
        for number in sorted(firsts - {max(there | firsts)}):
            name = f"{sequence}_{number:04d}"
            records.append(
                Record(
                    name=name,
                    image1=folder / f"{name}.png",
                    image2=folder / f"{sequence}_{number + 1:04d}.png",
                    flow=flows / f"{name}.png" if split == "training" else None,
                    dataset="hd1k",
                    scene=sequence,
                    sparse=True,
                )
            )
    return assemble(f"hd1k-{split}", home, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether this folder has HD1K's frames."""
    return has_any(folder, *_FRAMES.values())


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    parts = []
    if (folder / _FRAMES["training"]).is_dir():
        parts.append(Part("training", hd1k(folder, strict=False), TOTAL))
    if (folder / _FRAMES["testing"]).is_dir():
        parts.append(Part("testing", hd1k(folder, "testing", strict=False)))
    return Survey("HD1K", folder, tuple(parts))


def _numbers(folder: Path) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path in files_in(folder, IMAGE_SUFFIXES):
        if match := _NAME.match(path.stem):
            found.setdefault(match[1], set()).add(int(match[2]))
    return found

"""Middlebury stereo as flow: <scene>/im2.png, im6.png, disp2.png; u = −disparity, v = 0."""

from __future__ import annotations

import os
from pathlib import Path

from lcv.data.dataset import Dataset, Part, Survey, assemble
from lcv.data.layouts import find_home, subfolders
from lcv.data.record import Record

NAMES = ("Stereo", "stereo")
SCALE = 4.0


def stereo(root: str | os.PathLike[str], *, scale: float = SCALE, strict: bool = True) -> Dataset:
    """Left and right views with the flow that the disparity map of the left one gives.

    scale: grey levels to a pixel of disparity: 4 for the quarter-size scenes of 2003 (cones,
        teddy), 8 for those of 2001.
    """
    home = find_home(root, "Middlebury stereo", NAMES, is_home, "cones")
    records = [
        Record(
            name=folder.name,
            image1=folder / "im2.png",
            image2=folder / "im6.png",
            flow=folder / "disp2.png",
            dataset="stereo",
            scene=folder.name,
            sparse=True,
            disparity=scale,
        )
        for folder in subfolders(home)
        if (folder / "disp2.png").is_file()
    ]
    return assemble("stereo", home, records, strict=strict)


def is_home(folder: Path) -> bool:
    """Whether a scene in this folder has a disparity map under its usual name."""
    return any((path / "disp2.png").is_file() for path in subfolders(folder))


def survey(folder: Path) -> Survey:
    """What `lcv data check` looks at."""
    return Survey("Middlebury stereo", folder, (Part("views", stereo(folder, strict=False)),))

"""What words of `lcv predict` mean: the name of an output, a scale, a share of the work."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import ArgumentError

if TYPE_CHECKING:
    from lcv.predict.selection import Shard

CLIP_ENDINGS = (".mp4", ".webm", ".gif")


def meaning_of(name: str) -> str:
    """What an output's name asks for: "file", "clip" or "folder".

    A name is a folder's if it has no ending, or only a number for one (run-1.5), if it ends with /,
    or if there is such a folder. Any other ending must be one that can be written.
    """
    from lcv.predict.result import FLOWS, PICTURES

    if not name:
        raise ArgumentError("-o is an empty name, wanted a file or a folder")
    ending = Path(name).suffix.lower()
    if name.endswith(("/", os.sep)) or not ending or ending[1:].isdecimal() or Path(name).is_dir():
        return "folder"
    if ending in (*FLOWS, *PICTURES):
        return "file"
    if ending in CLIP_ENDINGS:
        return "clip"
    raise ArgumentError(
        f"{name}: nothing is written with the ending {ending!r}, wanted {', '.join(FLOWS)} for the "
        f"flow of a pair, {', '.join(PICTURES)} for its picture, or {', '.join(CLIP_ENDINGS)} for a "
        f"clip; for a folder of this name, end it with /"
    )


def formats_for(file: Path, formats: tuple[str, ...] | None, look: bool = False) -> tuple[str, ...]:
    """The formats of a named file: what its ending says, or what was asked, if they agree.

    look: a picture's name without --format is that of the look, and there is no other file
    """
    from lcv.predict.result import PICTURES

    ending = file.suffix.lower()
    # A .png is the picture; KITTI's encoding has to be asked for.
    named = "png" if ending in PICTURES else ending[1:]
    if formats is None:
        return () if look and named == "png" else (named,)
    if named not in formats and not (ending == ".png" and "kitti" in formats):
        raise ArgumentError(
            f"{file}: has the ending {ending!r}, but --format asks for {', '.join(formats)}; name "
            f"the file after its format, or name a folder"
        )
    return formats


def parse_scale(text: str) -> float | None:
    """A length in pixels, or None for "auto"."""
    if text == "auto":
        return None
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise ArgumentError(
            f"--scale is {text!r}, wanted auto, or a positive number: the length in pixels that is "
            f"drawn in full colour"
        )
    return scale


def parse_shard(text: str | None) -> Shard:
    """1/4 … 4/4; all of it without."""
    from lcv.predict.selection import Shard

    match = re.fullmatch(r"(\d+)/(\d+)", "1/1" if text is None else text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ArgumentError(
            f"--shard is {text!r}, wanted i/n with i from 1 to n, such as 1/4, 2/4, 3/4 and 4/4 for "
            f"four processes"
        )
    return Shard(int(match[1]), int(match[2]))

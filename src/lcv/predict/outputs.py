"""What is written of a pair, where, and whether it is there already and whole.

OUT/flow/SEQUENCE/PAIR.flo        the flow; .pfm, .npy, .npz and .flo5 lie beside it
OUT/kitti/…png                    the flow in KITTI's encoding
OUT/picture/…png                  the flow in colours
OUT/overlay/…png                  frame 1 with arrows
OUT/occluded/…png                 white where frame 2 does not show what frame 1 does
OUT/warp_error/…png               |frame 1 − frame 2 warped back|, 0 … 255, 0 also out of view
OUT/backward/, backward_kitti/, backward_picture/    the first three, from frame 2 to frame 1
OUT/clip/SEQUENCE.mp4             frame and flow side by side
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lcv.data.formats.checks import LIMIT_PIXELS
from lcv.data.formats.flow import read_flow, write_flow
from lcv.data.formats.image import write_image
from lcv.data.formats.kitti import write_kitti
from lcv.data.formats.mask import write_mask
from lcv.data.formats.png import walk_png
from lcv.errors import ArgumentError, FileError, LcvError
from lcv.files import check_output, make_folder, temporary_stem
from lcv.predict.result import FLOWS, PICTURES, FlowResult
from lcv.visual.colours import flow_to_colour
from lcv.visual.overlay import draw_arrows

ENDINGS = {
    "flo": ".flo",
    "kitti": ".png",
    "pfm": ".pfm",
    "flo5": ".flo5",
    "npy": ".npy",
    "npz": ".npz",
    "png": ".png",
}
# Those that keep every bit of the flow, quickest to read first.
EXACT = ("flo", "npy", "pfm", "npz", "flo5")
FOLDERS = {"kitti": "kitti", "png": "picture"}
MAPS = ("overlay", "occluded", "warp_error")
CLIPS = "clip"
# What `-o` may end in; `FlowResult.save` takes the same but for the clip.
FILES = (*FLOWS, *PICTURES)
CLIP_ENDING = ".mp4"


class Output(NamedTuple):
    """One file of a pair. kind: the folder it lies in; what: a format, or a name of MAPS"""

    kind: str
    what: str
    backward: bool = False

    @property
    def ending(self) -> str:
        return ENDINGS.get(self.what, ".png")


def wanted_outputs(
    formats: Iterable[str],
    *,
    backward: bool = False,
    overlay: bool = False,
    occlusion: bool = False,
    warp_error: bool = False,
) -> tuple[Output, ...]:
    """All files of a pair, in the order in which they are written."""
    found = []
    for name in dict.fromkeys(formats):
        if name not in ENDINGS:
            raise ArgumentError(f"unknown format {name!r}; the formats are {', '.join(ENDINGS)}")
        if name == "flo5" and importlib.util.find_spec("h5py") is None:
            raise ArgumentError(
                "the format flo5 needs h5py, which is not installed; say pip install "
                "'lcv-flow[spring]'"
            )
        found.append(Output(FOLDERS.get(name, "flow"), name))
        if backward:
            kind = f"backward_{FOLDERS[name]}" if name in FOLDERS else "backward"
            found.append(Output(kind, name, backward=True))
    asked = zip(MAPS, (overlay, occlusion, warp_error), strict=True)
    return (*found, *(Output(kind, kind) for kind, is_asked in asked if is_asked))


KINDS = tuple(
    dict.fromkeys(
        output.kind
        for output in wanted_outputs(
            ("flo", *FOLDERS), backward=True, overlay=True, occlusion=True, warp_error=True
        )
    )
)


@dataclass(frozen=True)
class Folder:
    """Outputs of many pairs, as the head of this module shows."""

    root: Path

    def path(self, output: Output, sequence: str, pair: str) -> Path:
        return self.place(output.kind, sequence, f"{pair}{output.ending}")

    def place(self, kind: str, sequence: str, file: str) -> Path:
        return self.root / kind / sequence / file

    def clip(self, sequence: str) -> Path:
        return self.root / CLIPS / f"{sequence or self.root.resolve().name}.mp4"

    def check(self) -> None:
        """Refuse, before any work is done, a place where nothing can be written."""
        nearest = next(p for p in (self.root, *self.root.absolute().parents) if p.exists())
        if not nearest.is_dir():
            raise FileError(
                f"{self.root}: {nearest} is a file, wanted a folder for the outputs; choose another "
                f"name with -o"
            )
        _check_writable(self.root, nearest)


@dataclass(frozen=True)
class Named:
    """Outputs of one pair beside the file that was named: out.flo, out_overlay.png and so on."""

    file: Path
    outputs: tuple[Output, ...]

    def path(self, output: Output, sequence: str = "", pair: str = "") -> Path:
        alone = sum(each.what in ENDINGS and not each.backward for each in self.outputs) == 1
        plain = output.kind in ("flow", "picture") or (alone and output.kind == "kitti")
        suffix = "" if plain else f"_{output.kind}"
        drawn = output.kind == "picture" and self.file.suffix.lower() in PICTURES
        ending = self.file.suffix if plain and (alone or drawn) else output.ending
        return self.file.with_name(f"{self.file.stem}{suffix}{ending}")

    def check(self, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
        """Refuse, before any work is done, names that are taken or cannot be written.

        inputs: files that are read, which no output may replace
        """
        check_apart((self.path(output) for output in self.outputs), inputs)
        for output in self.outputs:
            check_output(self.path(output), overwrite)
        _check_writable(self.file, self.file.parent)


def check_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse an output that is one of the inputs, by whatever name."""
    read = {where: path for path in inputs if (where := _identity(path)) is not None}
    for path in outputs:
        where = _identity(path)
        if where is not None and where in read:
            raise FileError(
                f"{path}: is the input {read[where]} itself, and inputs are never written to; "
                f"choose another name with -o"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from all others; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def meaning_of(name: str) -> str:
    """What an output's name asks for: "file", "clip" or "folder".

    A name is a folder's if it has no ending, or only a number for one (run-1.5), if it ends with /,
    or if there is such a folder. Any other ending must be one that can be written.
    """
    ending = Path(name).suffix.lower()
    if name.endswith(("/", os.sep)) or not ending or ending[1:].isdecimal() or Path(name).is_dir():
        return "folder"
    if ending in FILES:
        return "file"
    if ending == CLIP_ENDING:
        return "clip"
    raise _not_written(name, ending)


def formats_for(file: Path, formats: tuple[str, ...] | None) -> tuple[str, ...]:
    """The formats of a named file: what its ending says, or what was asked, if they agree."""
    ending = file.suffix.lower()
    if ending not in FILES:
        raise _not_written(str(file), ending)
    # A .png is the picture; KITTI's encoding has to be asked for.
    named = "png" if ending in PICTURES else ending[1:]
    if formats is None:
        return (named,)
    if named not in formats and not (ending == ".png" and "kitti" in formats):
        raise ArgumentError(
            f"{file}: has the ending {ending!r}, but --format asks for {', '.join(formats)}; name "
            f"the file after its format, or name a folder"
        )
    return formats


def _not_written(name: str, ending: str) -> ArgumentError:
    return ArgumentError(
        f"{name}: nothing is written with the ending {ending!r}, wanted {', '.join(FLOWS)} for the "
        f"flow of a pair, {', '.join(PICTURES)} for its picture, or {CLIP_ENDING} for a clip; for a "
        f"folder of this name, end it with /"
    )


def write_output(
    path: Path, output: Output, result: FlowResult, image: np.ndarray, scale: float, overwrite: bool
) -> None:
    """One file of a pair. image: frame 1, (H, W, 3) uint8; scale: of pictures, in pixels"""
    flow = result.backward if output.backward else result.flow
    assert flow is not None
    make_folder(path.parent)
    if output.what == "png":
        write_image(path, flow_to_colour(flow, scale), overwrite)
    elif output.what == "kitti":
        write_kitti(path, flow, None, overwrite)
    elif output.what == "overlay":
        write_image(path, with_arrows(image, flow), overwrite)
    elif output.what == "occluded":
        assert result.occluded is not None
        write_mask(path, result.occluded, overwrite)
    elif output.what == "warp_error":
        assert result.warp_error is not None
        grey = np.rint(np.nan_to_num(result.warp_error, nan=0.0)).clip(0, 255)
        write_mask(path, grey.astype(np.uint8), overwrite)
    else:
        write_flow(path, flow, None, overwrite)


def with_arrows(image: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """The frame under arrows that leave something of it to be seen, whatever its size."""
    return draw_arrows(image, flow, spacing=max(16, max(image.shape[:2]) // 36))


def is_whole(path: Path, output: Output) -> bool:
    """Whether a file is there and as long and as sound as its format can tell."""
    try:
        if output.what in EXACT:
            read_flow(path)
        else:
            walk_png(path, LIMIT_PIXELS)
    except (LcvError, OSError):
        return False
    return True


def leftovers(folder: Path) -> Iterator[Path]:
    """Temporary files in a folder: of runs at work, and of runs that were killed."""
    if folder.is_dir():
        yield from folder.glob(".*.part")


def is_left_of(path: Path, names: Collection[str]) -> bool:
    """Whether a temporary file is that of a file of one of these names."""
    return path.name[1:].rsplit(".", 2)[0] in {temporary_stem(name) for name in names}


def sweep(*paths: Path) -> None:
    """Remove what killed runs left half-written for files; each folder is read once."""
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(path.name)
    for folder, own in names.items():
        for left in leftovers(folder):
            if is_left_of(left, own):
                left.unlink(missing_ok=True)


def _check_writable(path: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{path}: the folder {folder} may not be written to; choose another place")

"""What is written of a pair, in which formats and under which names.

OUT/flow/SEQUENCE/PAIR.flo        the flow; .pfm, .npy, .npz and .flo5 lie beside it
OUT/kitti/…png                    the flow in KITTI's encoding
OUT/picture/…png                  the flow in colours
OUT/overlay/…png                  frame 1 with arrows
OUT/occluded/…png                 white where frame 2 does not show what frame 1 does
OUT/warp_error/…png               |frame 1 − frame 2 warped back|: black is 0 or out of view, white 64
OUT/look/…png                     frame, flow, arrows and error in one picture
OUT/backward/, backward_kitti/, backward_picture/    the first three, from frame 2 to frame 1
OUT/low/…npy                      with a warm start, what the next pair starts from
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lcv.data.formats.flo5 import h5py_for
from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image, write_image
from lcv.data.formats.mask import write_mask
from lcv.errors import ArgumentError
from lcv.files import check_apart, check_output, check_writable, whole_file
from lcv.predict.result import PICTURES, FlowResult
from lcv.visual.figures import Known
from lcv.visual.look import look
from lcv.visual.panel import panel, panel_of_pictures, with_arrows

if TYPE_CHECKING:
    from torch import Tensor

# Of flow: those that it can be read from again, the quickest and most exact first, and its picture.
READABLE = ("flo", "npy", "pfm", "npz", "flo5", "kitti")
FORMATS = (*READABLE, "png")
FOLDERS = {"kitti": "kitti", "png": "picture"}
FLOW_KINDS = ("flow", *FOLDERS.values())
MAPS = ("overlay", "occluded", "warp_error", "look")


class Output(NamedTuple):
    """One file of a pair. kind: the folder it lies in; what: of FORMATS or MAPS, or "low" """

    kind: str
    what: str
    backward: bool = False

    @property
    def ending(self) -> str:
        if self.what == "low":
            return ".npy"
        return ".png" if self.what in (*FOLDERS, *MAPS) else f".{self.what}"


LOW, LOOK = Output("low", "low"), Output("look", "look")
KINDS = (*FLOW_KINDS, "backward", "backward_kitti", "backward_picture", *MAPS, LOW.kind)


def wanted_outputs(
    formats: Iterable[str],
    *,
    backward: bool = False,
    overlay: bool = False,
    occlusion: bool = False,
    warp_error: bool = False,
    look: bool = False,
) -> tuple[Output, ...]:
    """All files of a pair, in the order in which they are written."""
    found = []
    for name in dict.fromkeys(formats):
        if name not in FORMATS:
            raise ArgumentError(f"unknown format {name!r}; the formats are {', '.join(FORMATS)}")
        if name == "flo5":
            h5py_for("format flo5")
        found.append(Output(FOLDERS.get(name, "flow"), name))
        if backward:
            kind = f"backward_{FOLDERS[name]}" if name in FOLDERS else "backward"
            found.append(Output(kind, name, backward=True))
    asked = zip(MAPS, (overlay, occlusion, warp_error, look), strict=True)
    return (*found, *(Output(kind, kind) for kind, is_asked in asked if is_asked))


class Drawing(NamedTuple):
    """What files of a pair are made from. image: frame 1, (H, W, 3) uint8; scale: of pictures

    truth: the true flow, where `look` shall show the error
    """

    result: FlowResult
    image: np.ndarray
    scale: float
    low: Tensor | None = None
    truth: Known | None = None

    def write(self, path: Path, output: Output, overwrite: bool) -> None:
        """One file of the pair."""
        result = self.result
        if output.what in FORMATS:
            flow = result.backward if output.backward else result.flow
            assert flow is not None
            name = "kitti" if output.what == "kitti" else None
            FlowResult(flow).save(path, overwrite, format=name, max_flow=self.scale)
        elif output.what == "overlay":
            write_image(path, with_arrows(self.image, result.flow, self.scale), overwrite)
        elif output.what == "occluded":
            assert result.occluded is not None
            write_mask(path, result.occluded, overwrite)
        elif output.what == "warp_error":
            assert result.warp_error is not None
            grey = np.rint(4 * np.nan_to_num(result.warp_error, nan=0.0)).clip(0, 255)
            write_mask(path, grey.astype(np.uint8), overwrite)
        elif output.what == "look":
            maps = {"warp_error": result.warp_error, "occluded": result.occluded}
            picture = look(self.image, result.flow, self.scale, truth=self.truth, **maps)
            write_image(path, picture, overwrite)
        else:
            assert self.low is not None
            with whole_file(path, overwrite) as temporary, temporary.open("wb") as file:
                np.save(file, self.low.float().cpu().numpy())


@dataclass(frozen=True)
class Named:
    """Outputs of one pair beside the file that was named: out.flo, out_overlay.png and so on."""

    file: Path
    outputs: tuple[Output, ...]

    def path(self, output: Output, *_: object) -> Path:
        named = [each for each in self.outputs if each.kind in FLOW_KINDS] or [LOOK]
        alone = len(named) == 1
        plain = output.kind in ("flow", "picture") or (alone and output in named)
        suffix = "" if plain else f"_{output.kind}"
        drawn = output.kind == "picture" and self.file.suffix.lower() in PICTURES
        ending = self.file.suffix if plain and (alone or drawn) else output.ending
        return self.file.with_name(f"{self.file.stem}{suffix}{ending}")

    def check(self, inputs: Iterable[Path], overwrite: bool) -> None:
        """Refuse, before any work is done, names that are taken, inputs, or cannot be written."""
        check_apart((self.path(output) for output in self.outputs), inputs)
        for output in self.outputs:
            check_output(self.path(output), overwrite)
        check_writable(self.file, self.file.parent)


def stored_panel(
    image: np.ndarray, files: dict[str, Path], scale: float, arrows: bool
) -> np.ndarray:
    """One frame of a clip from the outputs of its pair. files: by format"""
    for name in READABLE:
        if name in files:
            return panel(image, read_flow(files[name])[0], scale, arrows)
    left = read_image(files["overlay"]) if arrows and "overlay" in files else image
    return panel_of_pictures(left, read_image(files["png"]), scale)

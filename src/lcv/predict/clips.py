"""A film of frame and flow side by side, made while flows are computed or from their files."""

from __future__ import annotations

import os
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image
from lcv.errors import FileError, LcvError
from lcv.predict.outputs import EXACT, Folder, Output, make_folder, sweep, with_arrows
from lcv.visual.colours import flow_to_colour, wheel_legend
from lcv.visual.layout import side_by_side
from lcv.visual.video import clip

if TYPE_CHECKING:
    from collections.abc import Sequence as Many

# Players and browsers show films up to this width; wider ones are reduced by whole numbers.
WIDEST = 3840
SMALLEST_WHEEL = 24


def panel(image: np.ndarray, flow: np.ndarray, scale: float, arrows: bool) -> np.ndarray:
    """One frame of the film: the frame, with arrows if asked for, and its flow in colours.

    image: (H, W, 3) uint8; flow: (H, W, 2)
    """
    left = with_arrows(image, flow) if arrows else image
    return pasted(left, flow_to_colour(flow, scale), scale)


def pasted(left: np.ndarray, right: np.ndarray, scale: float) -> np.ndarray:
    """Two pictures of one size side by side, with words."""
    factor = -(-2 * left.shape[1] // WIDEST)
    pictures = [_reduced(picture, factor) for picture in (left, right)]
    pictures[1] = _with_wheel(pictures[1])
    return side_by_side(pictures, ["frame", f"flow; full colour is {scale:.3g} pixels"])


def can_be_rebuilt(outputs: Many[Output], arrows: bool) -> bool:
    """Whether the files of a pair hold all that its frame of the film shows, to the last bit."""
    whats = {output.what for output in outputs if not output.backward}
    return not whats.isdisjoint(EXACT) or ("png" in whats and (not arrows or "overlay" in whats))


def stored_panel(
    folder: Folder,
    outputs: Many[Output],
    names: tuple[str, str],
    image: np.ndarray,
    scale: float,
    arrows: bool,
) -> np.ndarray:
    """The same frame of the film from the files of a pair. names: of the sequence and the pair"""
    files = {output.what: folder.path(output, *names) for output in outputs if not output.backward}
    for what in EXACT:
        if what in files:
            return panel(image, read_flow(files[what])[0], scale, arrows)
    left = read_image(files["overlay"]) if arrows else image
    return pasted(left, read_image(files["png"]), scale)


class ClipWriter:
    """A film that is opened with its first frame, and appears when the block ends well.

    failed:     why it was given up (frames that change their size, a place that is taken); the job goes
                on without it
    is_refused: whether a file was in its place when it was to appear
    """

    def __init__(self, path: Path, rate: Fraction, overwrite: bool) -> None:
        self.path, self.rate, self.overwrite = path, rate, overwrite
        self.failed: LcvError | None = None
        self.is_refused = False
        self.count = 0
        self._stack = ExitStack()

    def __enter__(self) -> ClipWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._stack.__exit__(kind, error, trace)
        except FileError as refusal:
            if kind is not None or self.overwrite or not os.path.lexists(self.path):
                raise
            self.failed, self.is_refused = refusal, True

    def write(self, frame: np.ndarray) -> bool:
        """Add a frame; returns whether the film has it."""
        if self.failed is not None:
            return False
        if not self.count:
            make_folder(self.path.parent)
            sweep(self.path)
            self._write = self._stack.enter_context(clip(self.path, self.rate, self.overwrite))
            self._shape = frame.shape
        if frame.shape != self._shape:
            self.give_up(self._change_of_size(frame))
            return False
        self._write(frame)
        self.count += 1
        return True

    def _change_of_size(self, frame: np.ndarray) -> LcvError:
        return LcvError(
            f"{self.path}: no clip, since frames change their size: {self.count} were "
            f"{self._shape[1]}×{self._shape[0]} as shown, then {frame.shape[1]}×{frame.shape[0]}"
        )

    def give_up(self, error: LcvError) -> None:
        """Make no film after all."""
        self.failed = error
        # An error closes the film and removes what there is of it.
        self._stack.__exit__(LcvError, self.failed, None)
        self._stack = ExitStack()


def _with_wheel(picture: np.ndarray) -> np.ndarray:
    """The picture with the wheel of directions in a corner, where there is room for one."""
    side = min(picture.shape[:2]) // 7
    if side < SMALLEST_WHEEL:
        return picture
    wheel, margin = wheel_legend(side), side // 6
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]  # type: ignore[misc]
    picture = picture.copy()
    corner = picture[-side - margin : -margin, -side - margin : -margin]
    corner[np.hypot(x, y) <= 1] = wheel[np.hypot(x, y) <= 1]
    return picture


def _reduced(picture: np.ndarray, factor: int) -> np.ndarray:
    if factor == 1:
        return picture
    return np.asarray(Image.fromarray(picture).reduce(factor))

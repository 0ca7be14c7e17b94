"""A video of frame and flow side by side, from stored outputs or while flow is computed."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np

from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image
from lcv.errors import LcvError
from lcv.files import make_folder, sweep
from lcv.predict.outputs import READABLE
from lcv.visual.panel import panel, panel_of_pictures
from lcv.visual.video import clip


class ClipWriter(ExitStack):
    """A clip that is opened with its first frame, and appears when the block ends well.

    failed: why it was given up, since frames change their size; the job goes on without it
    """

    def __init__(self, path: Path, rate: Fraction, overwrite: bool) -> None:
        super().__init__()
        self.path, self.rate, self.overwrite = path, rate, overwrite
        self.failed: LcvError | None = None
        self.count = 0

    def write(self, frame: np.ndarray) -> None:
        """Add a frame."""
        if self.failed is not None:
            return
        if not self.count:
            make_folder(self.path.parent)
            sweep([self.path])
            self._write = self.enter_context(clip(self.path, self.rate, self.overwrite))
            self._shape = frame.shape
        if frame.shape == self._shape:
            self._write(frame)
            self.count += 1
            return
        self.failed = LcvError(
            f"{self.path}: no clip, since frames change their size: {self.count} were "
            f"{self._shape[1]}×{self._shape[0]} as shown, then {frame.shape[1]}×{frame.shape[0]}"
        )
        # An error closes the clip and removes what there is of it.
        self.__exit__(LcvError, self.failed, None)


def stored_panel(
    image: np.ndarray, files: dict[str, Path], scale: float, arrows: bool
) -> np.ndarray:
    """One frame of the clip from the outputs of its pair. files: by format"""
    for name in READABLE:
        if name in files:
            return panel(image, read_flow(files[name])[0], scale, arrows)
    left = read_image(files["overlay"]) if arrows and "overlay" in files else image
    return panel_of_pictures(left, read_image(files["png"]), scale)

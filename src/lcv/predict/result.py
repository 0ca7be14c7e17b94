"""What a prediction gives back: flow and its companions as arrays, as a picture, as a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from lcv.data.formats.flow import FORMATS, write_flow
from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError, FileError
from lcv.visual.colours import flow_to_colour, picture_scale

if TYPE_CHECKING:
    from lcv.predict.memory import Plan

PICTURES = (".png", ".jpg", ".jpeg", ".ppm")
FLOWS = tuple(suffix for suffix in FORMATS if suffix != ".png")


@dataclass(frozen=True, eq=False, repr=False)
class FlowResult:
    """Flow of one pair, and where asked what goes with it. The arrays need not be contiguous.

    flow:       (H, W, 2) float32, pixels; [..., 0] is x to the right, [..., 1] is y down
    backward:   (H, W, 2) float32, the flow from frame 2 to frame 1
    occluded:   (H, W) bool, pixels of frame 1 that frame 2 does not show, judged by whether flow
                and backward flow cancel (`lcv.losses.occlusion`)
    warp_error: (H, W) float32 in 0 … 255, |frame 1 − frame 2 warped back|, averaged over the
                colours; NaN where the flow leads out of view and there is nothing to compare
    plan:       how it was computed, and the memory that was expected
    notes:      remarks, such as a scene cut that reset a warm start
    """

    flow: np.ndarray
    backward: np.ndarray | None = None
    occluded: np.ndarray | None = None
    warp_error: np.ndarray | None = None
    plan: Plan | None = None
    notes: tuple[str, ...] = ()

    def picture(self, max_flow: float | None = None) -> np.ndarray:
        """The flow as colours, (H, W, 3) uint8 RGB.

        max_flow: the length in pixels drawn in full colour; by default `picture_scale` of this flow
        """
        return flow_to_colour(self.flow, max_flow or picture_scale(self.flow))

    def __repr__(self) -> str:
        height, width, _ = self.flow.shape
        length = np.hypot(self.flow[..., 0], self.flow[..., 1])
        return (
            f"FlowResult({width}×{height}, mean {length.mean():.2f} px, longest {length.max():.1f})"
        )

    def _repr_png_(self) -> bytes:
        """The picture, as a notebook shows it."""
        Image.fromarray(self.picture()).save(content := BytesIO(), "png")
        return content.getvalue()

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        *,
        format: str | None = None,
        max_flow: float | None = None,
    ) -> None:
        """Write the flow in the format that the ending of the name says.

        .flo, .pfm, .flo5, .npy, .npz: the flow itself, every bit of it
        .png, .jpg, .ppm:              the picture, with the scale `max_flow`
        format: "kitti" writes KITTI's 16-bit encoding of the flow to a .png instead

        The file appears whole or not at all, and replaces another only with `overwrite=True`.
        """
        suffix = Path(path).suffix.lower()
        if format not in (None, "kitti"):
            raise ArgumentError(f"format is {format!r}, wanted 'kitti' or none; the ending decides")
        if format == "kitti" and suffix != ".png":
            raise FileError(f"{path}: KITTI's flow is a .png, got the ending {suffix!r}")
        if format == "kitti" or suffix in FLOWS:
            write_flow(path, self.flow, overwrite=overwrite)
        elif suffix in PICTURES:
            write_image(path, self.picture(max_flow), overwrite)
        else:
            raise FileError(
                f"{path}: nothing can be written with the ending {suffix!r}, wanted one of "
                f"{', '.join(FLOWS)} for the flow or {', '.join(PICTURES)} for its picture"
            )

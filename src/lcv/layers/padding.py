"""Two ways to pad an image to multiples of a stride, both RAFT's, and back."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from lcv.errors import ArgumentError

MODES = ("sintel", "kitti")


class Padding(NamedTuple):
    """Pixels added on each side."""

    left: int
    right: int
    top: int
    bottom: int

    def apply(self, image: Tensor) -> Tensor:
        """The image with its border repeated outwards."""
        return F.pad(image, list(self), mode="replicate") if any(self) else image

    def undo(self, x: Tensor) -> Tensor:
        """The part of x that lies over the original image."""
        h, w = x.shape[-2:]
        return x[..., self.top : h - self.bottom, self.left : w - self.right]


def padding_for(height: int, width: int, stride: int, mode: str) -> Padding:
    """What an image lacks to multiples of `stride`.

    "sintel": shared between both sides, the odd pixel right and below;
    "kitti": the same sideways, but all of the vertical share below (the sky is at the top).
    """
    if mode not in MODES:
        raise ArgumentError(f"pad: unknown mode {mode!r}; the modes are {', '.join(MODES)}")
    # Written without a negative operand: compilers lose their way with one in symbolic sizes.
    across, down = (stride - width % stride) % stride, (stride - height % stride) % stride
    top = down // 2 if mode == "sintel" else 0
    return Padding(across // 2, across - across // 2, top, down - top)

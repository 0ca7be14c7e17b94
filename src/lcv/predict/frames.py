"""Everything that is accepted as a frame, as one tensor: (1, 3, h, w), RGB, 0 … 255."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from lcv.data.formats.image import read_image
from lcv.errors import ArgumentError, ShapeError

WANTED = (
    "wanted a path, a uint8 or uint16 array (H, W, 3) RGB or (H, W) grey, an image of Pillow, or a "
    "tensor (3, h, w) in 0 … 255"
)
# Resampled images may leave 0 … 255 by less than this; 16-bit numbers taken for 8-bit ones exceed it.
OVERSHOOT = 64.0

logger = logging.getLogger("lcv")


class Frame(NamedTuple):
    """A picture and how messages call it. image: (1, 3, h, w), uint8, or float32 in 0 … 255

    `as_frame` copies the image unless it is `owned`, since decoders reuse their arrays.
    """

    image: Tensor
    name: str

    @property
    def size(self) -> tuple[int, int]:
        """(h, w)"""
        return self.image.shape[2], self.image.shape[3]


def as_frame(given: Any, name: str, owned: bool = False) -> Frame:
    """A frame from whatever was given for it.

    given: a path, which `lcv.read_image` reads; an array (H, W, 3) RGB, (H, W) or (H, W, 1) grey,
        uint8, or uint16, which is divided by 257, or float in 0 … 255; an image of Pillow, as it
        is stored; a tensor (3, h, w) or (1, 3, h, w) of uint8 or float in 0 … 255
    name:  "frame1", say; a path is called by itself
    owned: whether nobody else will change the array, so that it need not be copied
    """
    if isinstance(given, Frame):
        return given
    if isinstance(given, str | os.PathLike):
        return Frame(_from_array(read_image(given), str(given)), str(given))
    if isinstance(given, Image.Image):
        deep = given.mode.startswith("I;16")
        given = np.array(given, np.uint16) if deep else np.array(given.convert("RGB"))
    if isinstance(given, Tensor):
        return Frame(_from_tensor(given, name), name)
    if isinstance(given, np.ndarray):
        return Frame(_from_array(given if owned else given.copy(), name), name)
    raise ArgumentError(f"{name} is a {type(given).__name__}, {WANTED}")


def check_same_size(frame1: Frame, frame2: Frame) -> None:
    """Refuse two frames that differ in size."""
    if frame1.size != frame2.size:
        raise ShapeError(
            f"the frames differ in size: {frame1.name} is {in_words(frame1.size)} pixels and "
            f"{frame2.name} is {in_words(frame2.size)} (width×height); flow needs both of one size"
        )


def pinned(image: Tensor) -> Tensor:
    """A copy that the GPU can fetch by itself; one from other memory would be waited for.

    Copied by numpy: torch's threads, started for each frame, would take time from those that read.
    """
    copy = torch.empty_like(image, pin_memory=True)
    np.copyto(copy.numpy(), image.numpy())
    return copy


def in_words(size: tuple[int, int]) -> str:
    """(h, w) as people say it: width×height."""
    return f"{size[1]}×{size[0]}"


def _from_array(array: np.ndarray, name: str) -> Tensor:
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3):
        hint = "; drop the fourth channel with [:, :, :3]" if array.shape[2:] == (4,) else ""
        raise ShapeError(f"{name} is an array of shape {array.shape}, {WANTED}{hint}")
    if array.dtype == np.uint16:
        array = array / np.float32(257)  # not rounded: the network takes what lies in between
    if array.dtype != np.uint8 and not np.issubdtype(array.dtype, np.floating):
        raise ArgumentError(f"{name} is an array of {array.dtype}, {WANTED}")
    # A view with channels first; it is copied when the network converts its type.
    return _checked(torch.from_numpy(array).permute(2, 0, 1)[None], name)


def _from_tensor(tensor: Tensor, name: str) -> Tensor:
    if tensor.dim() == 3:
        tensor = tensor[None]
    if tensor.dim() != 4 or tensor.shape[0] != 1 or tensor.shape[1] not in (1, 3):
        raise ShapeError(f"{name} is a tensor of shape {tuple(tensor.shape)}, {WANTED}")
    if tensor.dtype != torch.uint8 and not tensor.is_floating_point():
        raise ArgumentError(f"{name} is a tensor of {tensor.dtype}, {WANTED}")
    return _checked(tensor.detach().clone(), name)


def _checked(image: Tensor, name: str) -> Tensor:
    if 0 in image.shape:
        raise ShapeError(f"{name} is empty: {in_words((image.shape[2], image.shape[3]))} pixels")
    if image.dtype != torch.uint8:
        image = image.float()
        least, most = image.aminmax()
        if not bool(torch.isfinite(least) & torch.isfinite(most)):
            raise ArgumentError(f"{name} holds NaN or infinity; wanted numbers in 0 … 255")
        if least < -OVERSHOOT or most > 255 + OVERSHOOT:
            raise ArgumentError(
                f"{name} holds numbers from {float(least):.6g} to {float(most):.6g}, wanted "
                f"0 … 255; scale it first"
            )
        if 0 < most <= 1:
            logger.warning(
                f"{name} holds numbers up to {float(most):.3g}, which is almost black; a picture in "
                f"0 … 1 must be multiplied by 255 first"
            )
    return image.expand(1, 3, -1, -1)

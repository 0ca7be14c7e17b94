"""Read and write maps of small whole numbers: occlusions, invalid pixels, object numbers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from lcv.data.formats.checks import LIMIT_PIXELS, file_size, read_start
from lcv.data.formats.image import decode_png
from lcv.data.formats.png import SIGNATURE, encode_png, walk_png
from lcv.errors import FileError
from lcv.files import whole_file

GREY = 0


def read_mask(path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS) -> np.ndarray:
    """The values of a PNG as it stores them, (H, W) uint8.

    Grey of one to eight bits gives its samples, a palette its indices, colour its one value where
    all three channels agree. Sixteen bits and true colours are no mask, and refused; so is a
    damaged file. Nothing is scaled or turned.
    """
    path = Path(path)
    size = file_size(path, "a mask in PNG")
    if not read_start(path, 8).startswith(SIGNATURE):
        raise FileError(f"{path}: not a PNG ({size} bytes); a mask must be one, to keep its values")
    png = walk_png(path, max_pixels)
    if png.depth == 16:
        raise FileError(f"{path}: is a {png.kind} PNG, wanted a mask of at most eight bits")
    values = np.array(decode_png(path, png)).astype(np.uint8)
    if png.colour == GREY and png.depth in (2, 4):
        # Pillow stretches such greys over 0 … 255; this undoes it exactly.
        values //= 255 // (2**png.depth - 1)
    if values.ndim == 2:
        return values
    if values.shape[2] >= 3 and (values[:, :, 1:3] != values[:, :, :1]).any():
        raise FileError(f"{path}: is a {png.kind} PNG with colours, wanted a mask of one channel")
    return np.ascontiguousarray(values[:, :, 0])


def write_mask(path: str | os.PathLike[str], mask: np.ndarray, overwrite: bool = False) -> None:
    """Write (H, W) as a grey PNG: uint8 as it is, bool as 0 and 255."""
    if not isinstance(mask, np.ndarray) or mask.dtype not in (np.uint8, bool):
        found = getattr(mask, "dtype", type(mask).__name__)
        raise FileError(f"{path}: cannot write a mask of {found}, wanted a uint8 or bool array")
    if mask.ndim != 2 or 0 in mask.shape:
        raise FileError(f"{path}: cannot write a mask of shape {mask.shape}, wanted (H, W)")
    if Path(path).suffix.lower() != ".png":
        raise FileError(f"{path}: a mask is written as .png, not {Path(path).suffix!r}")
    values = mask.astype(np.uint8) * 255 if mask.dtype == bool else mask
    with whole_file(path, overwrite) as temporary:
        temporary.write_bytes(encode_png(values))

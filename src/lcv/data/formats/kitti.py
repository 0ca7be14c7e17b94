"""KITTI's flow PNG, also HD1K's: sixteen bits a channel, R = 64 u + 2^15, G = 64 v + 2^15, B = valid.

The range is −512 … 511.984375 in steps of 1/64 pixel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lcv.data.formats.checks import LIMIT_PIXELS, file_size
from lcv.data.formats.decode import decode_deep_png
from lcv.data.formats.png import encode_png, walk_png
from lcv.errors import FileError

SCALE = 64.0
ZERO = 2**15


def read_kitti(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); where B is 0, flow is 0 and not valid."""
    file_size(path, "a KITTI flow PNG")
    png = walk_png(path, max_pixels)
    if (png.depth, png.colour) != (16, 2):
        article = "an" if png.depth == 8 else "a"
        raise FileError(
            f"{path}: is {article} {png.kind} PNG, wanted 16-bit RGB; this is a picture, not a KITTI flow"
        )
    samples = decode_deep_png(path, png)
    valid = samples[:, :, 2] > 0
    # Exact: a whole number below 2^17 over 64 needs 17 of float32's 24 bits.
    flow = samples[:, :, :2].astype(np.float32)
    flow -= np.float32(ZERO)
    flow /= np.float32(SCALE)
    flow[~valid] = 0
    return flow, valid


def encode_kitti(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """Rounded to the nearest 1/64 pixel and clipped to the format's range.

    Pixels that are not valid are written as KITTI writes them: 2^15, 2^15, 0.
    """
    samples = np.empty((*valid.shape, 3), dtype=np.uint16)
    samples[:, :, :2] = np.clip(np.rint(flow.astype(np.float64) * SCALE) + ZERO, 0, 2**16 - 1)
    samples[:, :, 2] = valid
    return [encode_png(samples)]

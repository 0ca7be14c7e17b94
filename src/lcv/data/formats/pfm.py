"""FlyingThings3D's `.pfm`: three float32 channels, rows from bottom to top.

A text header of three fields ("PF", width and height, scale), then the values. A negative scale
means little endian, a positive one big endian; its magnitude is a unit that flow files do not
use, and is ignored as other readers do. The third channel holds nothing. "Pf" marks a single
channel (a disparity), which is not a flow.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_length,
    check_pixels,
    file_size,
    known_flow,
    mark_unknown,
)
from lcv.errors import FileError

HEADER = re.compile(
    rb"(PF|Pf)\s{1,2}([-+]?\d{1,10})\s{1,2}([-+]?\d{1,10})\s{1,2}([-+]?[\d.eE+-]{1,24})\r?[\n ]"
)


def read_pfm(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); NaN, infinity and beyond 1e9 are not valid."""
    size = file_size(path, "a .pfm file")
    with path.open("rb") as file:
        start = file.read(96)
        header = HEADER.match(start)
        if header is None:
            raise FileError(
                f"{path}: begins with {start[:24]!r}, wanted the PFM header 'PF', width and "
                f"height, scale; this is not a .pfm file or its header is damaged"
            )
        kind, width, height = header[1], int(header[2]), int(header[3])
        if kind == b"Pf":
            raise FileError(
                f"{path}: a PFM of one channel (Pf) is a disparity or depth, not a flow; wanted "
                f"three channels (PF)"
            )
        order = _byte_order(path, header[4])
        check_pixels(path, width, height, max_pixels)
        wanted = header.end() + 12 * width * height
        check_length(path, size, wanted, f"{width}×{height} pixels of three channels")
        file.seek(header.end())
        values = np.fromfile(file, dtype=f"{order}f4", count=3 * width * height)
    check_length(path, header.end() + values.nbytes, wanted, "the size its header declares")
    flow = values.reshape(height, width, 3)[::-1, :, :2].astype(np.float32)
    del values
    return known_flow(flow)


def _byte_order(path: Path, text: bytes) -> str:
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if scale == 0 or not math.isfinite(scale):
        raise FileError(
            f"{path}: the scale in the PFM header is {text.decode('ascii')!r}, wanted a number "
            f"below 0 (little endian) or above 0 (big endian)"
        )
    return "<" if scale < 0 else ">"


def encode_pfm(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """Little endian; pixels that are not valid become NaN."""
    mark_unknown(flow, valid, np.nan)
    height, width = valid.shape
    values = np.zeros((height, width, 3), dtype="<f4")
    values[:, :, :2] = flow[::-1]
    return [f"PF\n{width} {height}\n-1.0\n".encode("ascii"), values.data]

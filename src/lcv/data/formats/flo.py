"""Middlebury's `.flo`: also the format of Sintel, FlyingChairs and the FlyingThings subset.

Little endian: float32 202021.25 (the bytes "PIEH"), int32 width, int32 height, then u, v as
float32, interleaved, row by row from the top. A component beyond 1e9 means "not known".
"""

from __future__ import annotations

import struct
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

MAGIC = b"PIEH"
HEADER = struct.Struct("<4sii")
UNKNOWN = 1e10


def read_flo(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); unknown flow is 0 and not valid."""
    size = file_size(path, "a .flo file")
    with path.open("rb") as file:
        start = file.read(HEADER.size)
        if start[:4] != MAGIC:
            raise FileError(
                f"{path}: begins with {start[:4]!r}, wanted {MAGIC!r}; this is not a .flo file"
            )
        if len(start) < HEADER.size:
            raise FileError(f"{path}: ends inside its header, after {size} of 12 bytes")
        _, width, height = HEADER.unpack(start)
        check_pixels(path, width, height, max_pixels)
        wanted = HEADER.size + 8 * width * height
        check_length(path, size, wanted, f"{width}×{height} pixels of flow")
        values = np.fromfile(file, dtype="<f4", count=2 * width * height)
    check_length(path, HEADER.size + values.nbytes, wanted, "the size its header declares")
    return known_flow(values.reshape(height, width, 2))


def encode_flo(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """Pixels that are not valid become 1e10, the mark for unknown."""
    mark_unknown(flow, valid, UNKNOWN)
    height, width = valid.shape
    return [HEADER.pack(MAGIC, width, height), flow.astype("<f4", copy=False).data]

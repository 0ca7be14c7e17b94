"""Binary PPM and PGM (P6, P5): colour and grey of up to sixteen bits, as FlyingChairs stores them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from lcv.data.formats.checks import check_length, check_pixels, read_start
from lcv.errors import FileError

LONGEST_HEADER = 4096
# White space, with comments from # to the end of the line.
GAP = rb"(?:\s|#[^\n]*\n)+"
HEADER = re.compile(
    rb"P([56])" + GAP + rb"(\d{1,10})" + GAP + rb"(\d{1,10})" + GAP + rb"(\d{1,5})\s", re.DOTALL
)


def read_netpbm(path: Path, size: int, max_pixels: int) -> np.ndarray:
    """(H, W, 1 or 3) uint8, scaled from 0 … maxval to 0 … 255 and rounded."""
    header = HEADER.match(read_start(path, LONGEST_HEADER))
    if header is None:
        raise FileError(
            f"{path}: its PPM header is damaged, wanted P5 or P6, width, height, largest value"
        )
    channels = 3 if header[1] == b"6" else 1
    width, height, largest = int(header[2]), int(header[3]), int(header[4])
    check_pixels(path, width, height, max_pixels)
    if not 1 <= largest <= 65535:
        raise FileError(f"{path}: its largest value is {largest}, wanted 1 to 65535")
    kind = np.dtype(np.uint8 if largest < 256 else ">u2")
    count = width * height * channels
    check_length(
        path, size, header.end() + count * kind.itemsize, f"{width}×{height}×{channels} samples"
    )
    samples = np.fromfile(path, dtype=kind, count=count, offset=header.end())
    if samples.size != count or samples.max() > largest:
        raise FileError(f"{path}: holds values above the {largest} it declares; it is damaged")
    if largest != 255:
        # ⌊v · 255 / largest + ½⌋ in whole numbers, so that halves round up on every machine.
        wide = samples.astype(np.uint32)
        wide *= 510
        wide += largest
        wide //= 2 * largest
        samples = wide.astype(np.uint8)
    return samples.reshape(height, width, channels)

"""How a camera was held: the orientation in an EXIF block, and the turn that undoes it."""

from __future__ import annotations

import struct

import numpy as np

ORIENTATION = 0x0112
MOST_ENTRIES = 512


def orientation(block: bytes) -> int:
    """The orientation 1 … 8 in an EXIF block (TIFF layout); 1, upright, where there is none.

    A damaged block counts as none: it is a remark beside the picture, not the picture.
    """
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
    if order is None or len(block) < 8:
        return 1
    (start,) = struct.unpack_from(order + "I", block, 4)
    if start + 2 > len(block):
        return 1
    (count,) = struct.unpack_from(order + "H", block, start)
    for at in range(start + 2, start + 2 + 12 * min(count, MOST_ENTRIES), 12):
        if at + 12 > len(block):
            return 1
        tag, kind, number, value = struct.unpack_from(order + "HHIH", block, at)
        if tag == ORIENTATION:
            return value if (kind, number) == (3, 1) and 1 <= value <= 8 else 1
    return 1


def upright(image: np.ndarray, turned: int) -> np.ndarray:
    """The picture (H, W, …) as it was seen, given the orientation it was stored in."""
    if turned in (2, 7):
        image = image[:, ::-1]
    if turned in (4, 5):
        image = image[::-1]
    quarters = {3: 2, 5: -1, 6: -1, 7: -1, 8: 1}.get(turned, 0)
    return np.ascontiguousarray(np.rot90(image, quarters))

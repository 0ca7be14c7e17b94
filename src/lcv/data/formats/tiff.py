"""Hold a TIFF against its own word before Pillow opens it: its lists of tags, one picture, its tiles.

Pillow reads what each tag points to, page after page, and libtiff takes memory for a whole tile.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NoReturn

from lcv.errors import FileError

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
SIZES |= {16: 8, 17: 8, 18: 8}
"""Bytes of a value, by its type."""
WHOLE_NUMBERS = {1: "B", 3: "H", 4: "I", 13: "I"}
TILE_SIDES = (322, 323)
LISTS = (34665, 34853, 40965)
"""Tags that point to further lists of tags: EXIF, GPS, interoperability."""
TILE_FREELY = 2**22
"""Pixels of a tile in a picture of any size; else it may have four times those of the picture."""


def largest_tile(path: Path, file: BinaryIO, size: int) -> int:
    """The pixels of a tile, 0 where the picture has none; `file` is left at its start.

    Refused: a list of tags, or what a tag points to, that lies outside the file or with others
    takes more bytes than there are, and a second picture.
    """
    head = file.read(8)
    if len(head) < 8:
        _damaged(path, f"it ends after {size} bytes")
    order = "<" if head[:2] == b"II" else ">"
    first = struct.unpack_from(order + "I", head, 4)[0]
    waiting, seen, held, sides = [first], set(), 0, dict.fromkeys(TILE_SIDES, 0)
    while waiting:
        start = waiting.pop()
        if start in seen:
            continue
        seen.add(start)
        file.seek(start)
        count = int.from_bytes(file.read(2), "little" if order == "<" else "big")
        content = file.read(12 * count + 4)
        if not count or len(content) < 12 * count + 4:
            _damaged(path, f"its list of tags at byte {start} is empty or lies outside the file")
        following = struct.unpack_from(order + "I", content, 12 * count)[0]
        if start == first and following not in (0, start):
            raise FileError(
                f"{path}: holds more than one picture, wanted one; store them one by one"
            )
        held += 12 * count
        for tag, kind, number, value in struct.iter_unpack(order + "HHI4s", content[:-4]):
            length = SIZES.get(kind, 0) * number
            place = struct.unpack(order + "I", value)[0]
            held += length if length > 4 else 0
            if held > size or (length > 4 and place + length > size):
                _damaged(path, f"what its tag {tag} points to lies outside its {size} bytes")
            if tag not in LISTS + TILE_SIDES:
                continue
            if kind not in WHOLE_NUMBERS or number != 1:
                _damaged(path, f"its tag {tag} is not a whole number")
            found = struct.unpack_from(order + WHOLE_NUMBERS[kind], value)[0]
            if tag in LISTS:
                waiting.append(found)
            else:  # a tag may come twice, and readers differ in which they take
                sides[tag] = max(sides[tag], found)
    file.seek(0)
    return sides[322] * sides[323]


def check_tile(path: Path, tile: int, width: int, height: int) -> None:
    """Refuse tiles of far more pixels than the picture has."""
    most = max(TILE_FREELY, 4 * width * height)
    if tile > most:
        raise FileError(
            f"{path}: is {width}×{height} pixels in tiles of {tile}, wanted tiles of at most "
            f"{most}; the file is damaged"
        )


def _damaged(path: Path, reason: str) -> NoReturn:
    raise FileError(f"{path}: damaged TIFF: {reason}; fetch or write the file again")

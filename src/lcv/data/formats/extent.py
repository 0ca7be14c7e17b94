"""Does a video's file reach as far as it says? Demuxers stop without a word where it is cut."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from lcv.errors import FileError

EBML = b"\x1a\x45\xdf\xa3"
SEGMENT = 0x18538067
MOST_BOXES = 100_000
FIRST_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"pnot"}


def check_extent(path: Path, size: int) -> None:
    """Refuse an MP4, MOV, Matroska, WebM or AVI whose outermost parts end beyond the file."""
    with path.open("rb") as file:
        start = file.read(16)
        if start[4:8] in FIRST_BOXES:
            reach = _boxes(file, size)
        elif start[:4] == EBML:
            reach = _segment(file, size)
        elif start[:4] == b"RIFF":
            reach = 8 + int.from_bytes(start[4:8], "little") if start[8:12] == b"AVI " else 0
        else:
            return
    if reach > size:
        raise FileError(
            f"{path}: cut video: its parts reach to byte {reach}, but it has {size}; "
            f"fetch or record it again"
        )


def _boxes(file: BinaryIO, size: int) -> int:
    """Where the last of an MP4's boxes ends: length (4 bytes, or 8 after a 1), name, content."""
    position = 0
    for _ in range(MOST_BOXES):
        if position + 8 > size:
            break
        file.seek(position)
        head = file.read(16)
        length = int.from_bytes(head[:4], "big")
        if length == 0:  # to the end of the file
            return size
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        if length < 8:
            break  # no box; the demuxer decides about what follows
        position += length
    return position


def _segment(file: BinaryIO, size: int) -> int:
    """Where a Matroska file's segment ends; 0 where it does not say, as in live recordings."""
    position = 0
    for _ in range(16):
        file.seek(position)
        head = file.read(16)
        name, used = _number(head, keep_mark=True)
        length, more = _number(head[used:], keep_mark=False)
        if not used or not more:
            return 0
        if length == (1 << 7 * more) - 1:
            return 0
        position += used + more + length
        if name == SEGMENT or position > size:
            return position
    return 0


def _number(head: bytes, keep_mark: bool) -> tuple[int, int]:
    """EBML's number of 1 to 8 bytes, its length given by the leading zeros; (value, bytes)."""
    if not head or not head[0]:
        return 0, 0
    used = 9 - head[0].bit_length()
    if len(head) < used:
        return 0, 0
    (value,) = struct.unpack(">Q", head[:used].rjust(8, b"\0"))
    return (value if keep_mark else value & ((1 << 7 * used) - 1)), used

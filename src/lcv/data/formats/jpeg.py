"""Hold a JPEG against its own word: markers, size, and an end after the last scan.

A JPEG has no checksum, and libjpeg paints over what is missing. `walk_jpeg` follows the markers
from the start to the end marker (EOI) that closes the picture, not one inside a thumbnail, and
hands on a copy without comments and application segments. Bytes after EOI (phones put videos
there) are ignored.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lcv.data.formats.checks import check_pixels, check_unpacked
from lcv.data.formats.exif import orientation
from lcv.errors import FileError

START = b"\xff\xd8\xff"
FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
PROGRESSIVE = 0xC2
HUFFMAN_FRAMES = {0xC0, 0xC1, PROGRESSIVE}
MOST_SCANS = 100  # encoders write up to about a dozen, those that search for the best some more
# In coded data, FF 00 is a byte FF, and FF D0 … FF D7 are restart points.
NEXT_MARKER = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]", re.DOTALL)


@dataclass(frozen=True)
class Jpeg:
    """A JPEG that passed `walk_jpeg`: how it is coded, how it was held, its pixels as a file."""

    is_huffman: bool
    orientation: int
    stripped: bytes


def walk_jpeg(path: Path, max_pixels: int) -> Jpeg:
    """Check the JPEG at `path` up to its end marker; see the module's head."""
    content = path.read_bytes()
    kept, position, turned, coded, scans = [b"\xff\xd8"], 2, 1, 0, 0
    frame: tuple[int, bytes] | None = None
    complete: set[tuple[int, int]] = set()
    while True:
        position, marker = _marker(path, content, position)
        if marker == 0xD9:
            break
        if position + 2 > len(content):
            _cut(path, "inside a segment")
        length = struct.unpack_from(">H", content, position)[0]
        segment = content[position + 2 : position + length]
        if length < 2 or position + length > len(content):
            _cut(path, f"inside a segment of {length} bytes")
        position += length
        if marker in FRAMES:
            if frame is not None or len(segment) < 6 or len(segment) != 6 + 3 * segment[5]:
                raise FileError(f"{path}: damaged JPEG: its frame header makes no sense")
            frame = marker, segment
            height, width = struct.unpack_from(">HH", segment, 1)
            check_pixels(path, width, height, max_pixels)
        if marker == 0xE1 and segment[:6] == b"Exif\0\0":
            turned = orientation(segment[6:])
        if _matters(marker, segment):
            kept.append(content[position - length - 2 : position])
        if marker == 0xDA:
            if frame is None:
                raise FileError(f"{path}: damaged JPEG: a scan before the frame header")
            scans += 1
            if scans > MOST_SCANS:  # each is a pass over all pixels, whatever it holds
                raise FileError(
                    f"{path}: holds more than {MOST_SCANS} scans, wanted a JPEG as encoders write "
                    f"them; the file is damaged, or, if it can be trusted, convert it to PNG"
                )
            complete |= _completed(segment)
            found = NEXT_MARKER.search(content, position)
            if found is None:
                _cut(path, "inside its coded data, without the end marker")
            kept.append(content[position : found.start()])
            coded += found.start() - position
            position = found.start()
    if frame is None or not coded:
        raise FileError(f"{path}: damaged JPEG: it ends before any coded data")
    is_huffman = frame[0] in HUFFMAN_FRAMES and frame[1][0] == 8
    if is_huffman and 8 * coded < _blocks(path, width, height, frame[1]):
        raise FileError(
            f"{path}: {coded} bytes of coded data cannot hold {width}×{height} pixels; "
            f"the file is damaged"
        )
    check_unpacked(path, len(content), 3 * width * height)
    channels = frame[1][6::3]
    if frame[0] == PROGRESSIVE and len(complete & _wanted(channels)) < 64 * len(channels):
        raise FileError(f"{path}: cut JPEG: the last of its progressive scans are missing")
    return Jpeg(is_huffman, turned, b"".join([*kept, b"\xff\xd9"]))


def _marker(path: Path, content: bytes, position: int) -> tuple[int, int]:
    """The next marker at `position` and where its content begins."""
    if position >= len(content):
        _cut(path, "without the end marker")
    if content[position] != 0xFF:
        raise FileError(f"{path}: damaged JPEG: byte {position} is no marker; fetch it again")
    while position < len(content) and content[position] == 0xFF:
        position += 1
    if position >= len(content):
        _cut(path, "inside a marker")
    return position + 1, content[position]


def _matters(marker: int, segment: bytes) -> bool:
    """Is it needed for the pixels? Of application data, only what names the colour space is."""
    if marker == 0xE0:
        return segment[:5] == b"JFIF\0" and len(segment) >= 14
    if marker == 0xEE:
        return segment[:5] == b"Adobe" and len(segment) >= 12
    return not (0xE0 <= marker <= 0xEF or marker == 0xFE)


def _completed(scan: bytes) -> set[tuple[int, int]]:
    """(channel, coefficient) that a progressive scan brings to its last bit."""
    count = scan[0] if scan else 0
    if len(scan) != 4 + 2 * count or scan[-1] & 15:
        return set()
    first, last = scan[-3], min(scan[-2], 63)
    return {(c, k) for c in scan[1:-3:2] for k in range(first, last + 1)}


def _wanted(channels: bytes) -> set[tuple[int, int]]:
    return {(c, k) for c in channels for k in range(64)}


def _blocks(path: Path, width: int, height: int, frame: bytes) -> int:
    """Blocks of 8×8 in the fullest channel: each takes a bit at least in a Huffman code."""
    factors = [(frame[i] >> 4, frame[i] & 15) for i in range(7, len(frame), 3)]
    if not factors or min(min(pair) for pair in factors) < 1:
        raise FileError(f"{path}: damaged JPEG: its frame header makes no sense")
    across, down = (max(pair[i] for pair in factors) for i in (0, 1))
    return max(-(-width * h // (8 * across)) * -(-height * v // (8 * down)) for h, v in factors)


def _cut(path: Path, where: str) -> NoReturn:
    raise FileError(f"{path}: cut JPEG: it ends {where}; fetch the file again")

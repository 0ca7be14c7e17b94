"""Animated PNG and WebP: how they are told from pictures, and WebP for a video decoder."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, WebPImagePlugin

from lcv.data.formats.checks import (
    MOST_PACKED,
    check_pixels,
    check_unpacked,
    file_size,
    read_start,
)
from lcv.data.formats.pillow_files import DAMAGES
from lcv.data.formats.png import SIGNATURE, framed
from lcv.errors import FileError

MOST_CHUNKS = 1000
FREELY = 2**27  # bytes of PNG that a WebP may become, however small it is


def is_webp(start: bytes) -> bool:
    """By a file's first twelve bytes."""
    return start[:4] == b"RIFF" and start[8:12] == b"WEBP"


def is_animated(path: Path) -> bool:
    """Whether a PNG or WebP says that it has more than one frame."""
    start = read_start(path, 21)
    if is_webp(start):
        return start[12:16] == b"VP8X" and bool(start[20] & 2)
    if not start.startswith(SIGNATURE):
        return False
    with path.open("rb") as file:
        file.seek(len(SIGNATURE))
        for _ in range(MOST_CHUNKS):
            head = file.read(8)
            if len(head) < 8 or head[4:] == b"IDAT":
                return False
            if head[4:] == b"acTL":
                return True
            file.seek(int.from_bytes(head[:4], "big") + 4, io.SEEK_CUR)
    return False


def check_webp(path: Path, size: int, max_pixels: int) -> None:
    """Refuse a WebP that is cut, or whose canvas is too large; libwebp makes it on opening."""
    head = read_start(path, 30)
    if len(head) < 30 or struct.unpack_from("<I", head, 4)[0] + 8 > size:
        raise FileError(f"{path}: cut WebP: it declares more bytes than the {size} there are")
    kind = head[12:16]
    if kind == b"VP8X":
        width = 1 + int.from_bytes(head[24:27], "little")
        height = 1 + int.from_bytes(head[27:30], "little")
    elif kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    check_pixels(path, width, height, max_pixels)
    check_unpacked(path, size, 4 * width * height)


def webp_as_png(path: Path, max_pixels: int) -> io.BytesIO:
    """An animated WebP as an animated PNG, in memory: FFmpeg decodes only the other.

    Refused where all frames together have more than `max_pixels`, or become a large PNG, and
    the file is far too small for that.
    """
    size = file_size(path, "a WebP file")
    check_webp(path, size, max_pixels)
    try:
        picture = WebPImagePlugin.WebPImageFile(io.BytesIO(path.read_bytes()))
        check_pixels(path, *picture.size, max_pixels)
        count, pixels = picture.n_frames, picture.width * picture.height
        if count * pixels > max(max_pixels, MOST_PACKED * size // 4):
            raise FileError(
                f"{path}: its {size} bytes claim {count} frames of {picture.width}×"
                f"{picture.height} pixels, wanted at most {max_pixels} pixels in all; convert it "
                f"to a video or, if it can be trusted, read it in Python with "
                f"max_pixels={count * pixels}"
            )
        header = struct.pack(">IIBBBBB", *picture.size, 8, 2, 0, 0, 0)
        content = io.BytesIO(SIGNATURE + framed(b"IHDR", header))
        content.seek(0, io.SEEK_END)
        content.write(framed(b"acTL", struct.pack(">II", count, 0)))
        for chunk in _frames(picture):
            content.write(chunk)
            if content.tell() > max(FREELY, MOST_PACKED * size):
                raise FileError(
                    f"{path}: its {size} bytes unpack to a PNG of more than {content.tell()}, "
                    f"wanted at most {MOST_PACKED} times as many; convert it to a video"
                )
    except DAMAGES as error:
        raise FileError(f"{path}: damaged WebP: {error}") from None
    content.write(framed(b"IEND", b""))
    content.seek(0)
    return content


def _frames(picture: Image.Image) -> Iterator[bytes]:
    """The chunks of an animated PNG that hold the frames, one after another."""
    number = 0
    for index in range(picture.n_frames):  # type: ignore[attr-defined]
        picture.seek(index)
        frame = picture.convert("RGB")
        milliseconds = min(int(picture.info.get("duration", 0)), 65535)
        place = (number, *frame.size, 0, 0, milliseconds, 1000, 0, 0)
        yield framed(b"fcTL", struct.pack(">IIIIIHHBB", *place))
        number += 1
        frame.info.clear()  # colour profiles and the like, which would be written too
        frame.save(memory := io.BytesIO(), "PNG", compress_level=1)
        still, at = memory.getvalue(), len(SIGNATURE)
        while at < len(still):
            length = int.from_bytes(still[at : at + 4], "big")
            if still[at + 4 : at + 8] == b"IDAT":
                data = still[at + 8 : at + 8 + length]
                if index == 0:
                    yield framed(b"IDAT", data)
                else:
                    yield framed(b"fdAT", struct.pack(">I", number) + data)
                    number += 1
            at += 12 + length

"""Animated PNG and WebP: how they are told from pictures, and WebP for a video decoder."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import WebPImagePlugin

from lcv.data.formats.checks import check_pixels, read_start
from lcv.data.formats.pillow_files import DAMAGES
from lcv.data.formats.png import SIGNATURE
from lcv.errors import FileError

MOST_CHUNKS = 1000


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


def webp_as_png(path: Path, max_pixels: int) -> io.BytesIO:
    """An animated WebP as an animated PNG, in memory: FFmpeg decodes only the other.

    A frame that is equal to the one before it is left out.
    """
    try:
        picture = WebPImagePlugin.WebPImageFile(io.BytesIO(path.read_bytes()))
        check_pixels(path, *picture.size, max_pixels)
        picture.save(content := io.BytesIO(), "PNG", save_all=True, compress_level=1)
    except DAMAGES as error:
        raise FileError(f"{path}: damaged WebP: {error}") from None
    content.seek(0)
    return content

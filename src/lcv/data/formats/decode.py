"""Decode with PyAV what Pillow cannot: PNGs of sixteen bits, and JPEGs where no error is forgiven.

The decoders are called by name on bytes in memory: no container is guessed, no file name is
expanded, and nothing else can be opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lcv.data.formats.png import CHANNELS, Png
from lcv.errors import FileError

LAYOUTS = {0: "gray16be", 2: "rgb48be", 4: "ya16be", 6: "rgba64be"}


def decode_deep_png(path: Path, png: Png) -> np.ndarray:
    """Samples of a 16-bit PNG as (H, W, channels) uint16, exactly as stored."""
    frames = _decode(path, "png", png.stripped, {})
    if len(frames) != 1 or frames[0].format.name != LAYOUTS[png.colour]:
        found = [frame.format.name for frame in frames]
        raise FileError(f"{path}: decodes as {found}, wanted one picture of {png.kind}")
    plane = frames[0].planes[0]
    channels = CHANNELS[png.colour]
    # Lines in the decoder's memory are padded; the padding is cut off here.
    lines = np.frombuffer(plane, dtype=">u2").reshape(frames[0].height, plane.line_size // 2)
    samples = lines[: png.height, : png.width * channels].astype(np.uint16)
    if samples.shape != (png.height, png.width * channels):
        raise FileError(f"{path}: decodes to {samples.shape}, not to the size its header declares")
    return samples.reshape(png.height, png.width, channels)


def check_jpeg_body(path: Path, content: bytes) -> None:
    """Refuse a JPEG whose coded data end before its last block, which Pillow fills with grey.

    The decoder looks before each block, so that a gap inside the very last one goes unseen.
    """
    _decode(path, "mjpeg", content, {"err_detect": "explode"})


def _decode(path: Path, codec: str, content: bytes, options: dict[str, str]) -> list[Any]:
    # Loaded when first needed: training from frames that are no JPEGs does without it.
    import av

    try:
        decoder: Any = av.CodecContext.create(codec, "r")
        decoder.thread_count = 1
        decoder.options = options
        return [*decoder.decode(av.Packet(content)), *decoder.decode(None)]
    except av.error.InvalidDataError:
        raise FileError(f"{path}: damaged: its coded data break off or make no sense") from None
    except (av.error.PatchWelcomeError, av.error.EOFError):
        return []  # a kind of picture this decoder does not know
    except av.FFmpegError as error:
        raise FileError(f"{path}: cannot be decoded: {error.strerror}") from None

"""Small files for the tests of the formats, and what a reader may return."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

FLOW_SUFFIXES = (".flo", ".png", ".pfm", ".flo5", ".npy", ".npz")


def some_flow(height: int = 6, width: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Flow on KITTI's grid of 1/64, so that every format keeps it, and a mask with both values."""
    rng = np.random.default_rng(seed)
    flow = rng.integers(-(2**15), 2**15, (height, width, 2)).astype(np.float32) / 64
    valid = rng.random((height, width)) < 0.7
    valid[0, :2] = True, False
    flow[~valid] = 0
    return flow, valid


def some_rgb(height: int = 6, width: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def assert_is_flow(flow: np.ndarray, valid: np.ndarray) -> None:
    assert flow.dtype == np.float32
    assert valid.dtype == bool
    assert flow.shape == (*valid.shape, 2)
    assert np.abs(flow).max() <= 1e9  # false for NaN too
    assert not flow[~valid].any()


def assert_is_image(image: np.ndarray) -> None:
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3


def png_chunk(kind: bytes, content: bytes) -> bytes:
    crc = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)


def png_file(
    width: int,
    height: int,
    depth: int,
    colour: int,
    rows: bytes,
    *,
    interlaced: int = 0,
    before: bytes = b"",
) -> bytes:
    """A PNG from its filtered rows; `before` are whole chunks to come before the image data."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + before
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )


def unfiltered(width: int, height: int, step: int, rows: bytes) -> np.ndarray:
    """Undo PNG's row filters, byte by byte as its standard says; (height, width · step) uint8."""
    length = width * step
    above = bytearray(length)
    out = []
    for y in range(height):
        kind = rows[y * (length + 1)]
        line = bytearray(rows[y * (length + 1) + 1 : (y + 1) * (length + 1)])
        if kind == 2:
            line = bytearray((x + b) & 255 for x, b in zip(line, above, strict=True))
        elif kind:
            for i in range(length):
                a = line[i - step] if i >= step else 0
                b = above[i]
                if kind == 1:
                    guess = a
                elif kind == 3:
                    guess = (a + b) // 2
                else:
                    c = above[i - step] if i >= step else 0
                    to_a, to_b, to_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                    guess = a if to_a <= to_b and to_a <= to_c else b if to_b <= to_c else c
                line[i] = (line[i] + guess) & 255
        out.append(bytes(line))
        above = line
    return np.frombuffer(b"".join(out), dtype=np.uint8).reshape(height, length)


def save_clip(
    path: Path,
    frames: Sequence[np.ndarray],
    *,
    codec: str = "ffv1",
    pixels: str = "bgr0",
    milliseconds: Sequence[int] | None = None,
    **muxer: str,
) -> None:
    """A video of these frames; ffv1 in bgr0 keeps every value, mpeg4 in yuv420p does not."""
    import av

    with av.open(str(path), "w", options=muxer) as container:
        stream = container.add_stream(codec, rate=10)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = pixels
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for number, rgb in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(rgb, "rgb24")
            frame.pts = milliseconds[number] if milliseconds else 100 * number
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def save_changing_clip(path: Path) -> None:
    """Three frames of 48×32 and three of 64×48, in a transport stream, which may change its size
    on the way: another coder takes over."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 32, 48, "yuv420p"
        second = av.CodecContext.create("mpeg4", "w")
        second.height, second.width, second.pix_fmt = 48, 64, "yuv420p"
        second.time_base = Fraction(1, 10)
        for first, coder in enumerate((stream, second)):
            for number in range(3):
                rgb = some_rgb(32 + 16 * first, 48 + 16 * first, number)
                frame = av.VideoFrame.from_ndarray(rgb, "rgb24")
                frame.pts, frame.time_base = 3 * first + number, Fraction(1, 10)
                for packet in coder.encode(frame):
                    packet.stream, packet.time_base = stream, Fraction(1, 10)
                    container.mux(packet)

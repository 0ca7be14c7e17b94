"""Decode one file and say what is in it, or why it cannot be decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lcv.data.formats.image import read_image
from lcv.data.formats.mask import read_mask
from lcv.data.record import read_truth
from lcv.errors import FileError, LcvError


@dataclass(frozen=True)
class Facts:
    """What every file has. size: (width, height), None if `error` says why there is none."""

    path: Path
    size: tuple[int, int] | None = None
    depth: str = ""
    error: str | None = None


@dataclass(frozen=True)
class FrameFacts(Facts):
    """digest: of the decoded pixels, so that a copy under another format is known too.

    flat: one colour all over; such frames are alike without being copies.
    """

    digest: bytes = b""
    flat: bool = False
    frames: int = 1


@dataclass(frozen=True)
class TruthFacts(Facts):
    """known: pixels with truth; low, high: (u, v) over them; largest: of √(u² + v²)."""

    pixels: int = 0
    known: int = 0
    low: tuple[float, float] = (0.0, 0.0)
    high: tuple[float, float] = (0.0, 0.0)
    largest: float = 0.0


def inspect(path: Path, kind: Callable[[Path], Facts]) -> Facts:
    """What one of the functions below finds in a file, or why it cannot be decoded."""
    try:
        return kind(path)
    except (LcvError, OSError) as error:
        return Facts(path, error=str(error).removeprefix(f"{path}: "))


def inspect_frame(path: Path) -> FrameFacts:
    """A picture: its size, bit depth and digest."""
    image = read_image(path)
    flat = bool((image == image[:1, :1]).all())
    return FrameFacts(path, _size(image), bit_depth(path), None, _digest(image), flat)


def inspect_video(path: Path) -> FrameFacts:
    """A video, every frame decoded, one held at a time."""
    from lcv.data.formats.video import read_video

    count, size = 0, None
    for image in read_video(path):
        if size not in (None, _size(image)):
            raise FileError(f"frame {count} is {_size(image)}, not {size}")
        count, size = count + 1, _size(image)
    if count < 2:
        raise FileError(f"has {count} frames, wanted at least two")
    return FrameFacts(path, size, "video", frames=count)


def inspect_truth(path: Path, step: int = 1, disparity: float | None = None) -> TruthFacts:
    """A flow: its size on the frames' grid, its range, and how much of it is known."""
    flow, valid = read_truth(path, step, disparity)
    depth = "disparity, 8 bit" if disparity is not None else bit_depth(path)
    facts = TruthFacts(path, _size(flow), depth, pixels=valid.size)
    if not valid.any():
        return facts
    values = flow[valid]
    low, high = values.min(0), values.max(0)
    return replace(
        facts,
        known=len(values),
        low=(float(low[0]), float(low[1])),
        high=(float(high[0]), float(high[1])),
        largest=float(np.sqrt(np.square(values.astype(np.float64)).sum(1).max())),
    )


def inspect_map(path: Path) -> Facts:
    """A map of occlusions, invalid pixels or objects."""
    return Facts(path, _size(read_mask(path)), bit_depth(path))


def bit_depth(path: Path) -> str:
    """Bits a channel, read from the header: "8 bit", "16 bit", or "float32" for flow files."""
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(b"\x89PNG"):
        return f"{start[24]} bit"
    if start[:2] in (b"P5", b"P6"):
        words = [w for line in start.split(b"\n") for w in line.split(b"#")[0].split()]
        return (
            "16 bit" if len(words) > 3 and words[3].isdigit() and int(words[3]) > 255 else "8 bit"
        )
    return (
        "float32" if path.suffix.lower() in (".flo", ".pfm", ".flo5", ".npy", ".npz") else "8 bit"
    )


def _size(array: np.ndarray) -> tuple[int, int]:
    return array.shape[1], array.shape[0]


def _digest(image: np.ndarray) -> bytes:
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    return digest.digest()

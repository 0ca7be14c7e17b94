"""From uploaded files, or from a recipe, to the frames that the page works on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lcv.data.formats.decoder import Decoder, Source, decode
from lcv.demo import limits
from lcv.demo.picture import read_picture
from lcv.errors import ArgumentError, FileError, LcvError, ShapeError
from lcv.predict.reduced import reduced_size

VIDEOS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ogv", ".gif")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Frames of one size, (H, W, 3) uint8 each, and what is known about them.

    truth: (H, W, 2) flow from frame 0 to frame 1, and occluded: (H, W) bool, where they are ours
    note:  what else is to be said about them
    given: height and width before any reduction
    rate:  frames a second
    """

    frames: tuple[np.ndarray, ...]
    name: str
    note: str = ""
    truth: np.ndarray | None = None
    occluded: np.ndarray | None = None
    given: tuple[int, int] | None = None
    rate: Fraction = Fraction(10)

    def pair(self, position: int, side: int = limits.SIDES[0]) -> tuple[np.ndarray, np.ndarray]:
        """Frame `position` and the next; the last pair where there is none so late.

        side: their longer side is reduced to this
        """
        first = min(max(int(position), 0), len(self.frames) - 2)
        return self.frame(first, side), self.frame(first + 1, side)

    def frame(self, number: int, side: int = limits.SIDES[0]) -> np.ndarray:
        return _reduced(self.frames[number], side)

    def size(self, side: int) -> tuple[int, int]:
        """Height and width of the frames at that side."""
        height, width = self.frames[0].shape[:2]
        return reduced_size(height, width, side)

    def about(self, side: int) -> str:
        """The note, and by how much the frames are reduced."""
        given, used = self.given or self.frames[0].shape[:2], self.size(side)
        if given == used:
            return self.note
        return (
            f"{self.note} Reduced from {_size(given)} to {_size(used)} pixels; `lcv predict` takes "
            f"any size."
        ).strip()


@dataclass(frozen=True)
class Example:
    """A procedural pair: a recipe's name, a seed, an index."""

    recipe: str
    seed: int
    index: int


EXAMPLES = {
    "Gentle motion": Example("moderate", 5, 4),
    "Large motion": Example("fine", 6, 7),
    "Thin shapes": Example("fine", 6, 5),
    "Stripes": Example("moderate", 5, 2),
}
"""The pairs one can choose, made on the spot, with exact truth."""
EXAMPLE_SIZE = (240, 320)


@cache
def example(name: str) -> Chosen:
    """One of EXAMPLES: sharp, and otherwise without effects, so that the sliders' are the only ones."""
    from lcv.data.synthetic import RECIPES, Recipe, generate, procedural_bank

    if name not in EXAMPLES:
        raise ArgumentError(f"there is no example {name!r}; there are {', '.join(EXAMPLES)}")
    which = EXAMPLES[name]
    recipe = RECIPES[which.recipe].without_effects()
    assert isinstance(recipe, Recipe)  # no mixture
    recipe = replace(
        recipe,
        layers=6,
        flat_probability=0.0,
        contrast=(0.9, 1.2),
        sharpen=1.0,
        sharpen_amount=(1.0, 2.0),
    )
    # Few and small textures: the whole bank takes longer than the flow.
    bank = procedural_bank("held-out", count=12, size=256)
    batch = generate(recipe, which.seed, [which.index], EXAMPLE_SIZE, textures=bank)
    images = (
        image[0].movedim(0, 2).round().byte().numpy() for image in (batch.image1, batch.image2)
    )
    return Chosen(
        tuple(np.ascontiguousarray(image) for image in images),
        name,
        "A procedural pair, made here, with exact truth.",
        truth=np.ascontiguousarray(batch.flow[0].movedim(0, 2).numpy()),
        occluded=batch.occluded[0, 0].numpy(),
    )


def from_files(paths: Sequence[Path]) -> Chosen:
    """Two images or one video; errors name a file as its owner does, not by our folder."""
    if not paths:
        raise ArgumentError("no file came; drop two images or one video, or choose an example")
    videos = [path for path in paths if path.suffix.lower() in VIDEOS]
    if len(paths) > 2 or (videos and len(paths) > 1):
        raise ArgumentError(
            f"{len(paths)} files came, {len(videos)} of them videos; wanted two images or one video"
        )
    if len(paths) == 1 and not videos:
        raise ArgumentError(
            f"{paths[0].name}: one image came, wanted two; choose both at once, frame 1 first"
        )
    try:
        return _video(videos[0]) if videos else _pictures(paths)
    except LcvError as error:
        raise FileError(_in_their_words(str(error), paths)) from None


def _pictures(paths: Sequence[Path]) -> Chosen:
    frames = [_read(path) for path in paths]
    given, other = (frame.shape[:2] for frame in frames)
    if given != other:
        raise ShapeError(
            f"{paths[0].name} is {_size(given)} and {paths[1].name} is {_size(other)} pixels; wanted "
            f"two frames of one size"
        )
    kept = tuple(_reduced(frame, limits.SIDES[-1]) for frame in frames)
    return Chosen(kept, f"{paths[0].name} and {paths[1].name}", given=given)


def _read(path: Path) -> np.ndarray:
    if path.stat().st_size > limits.MOST_BYTES:
        raise FileError(
            f"{path}: {path.stat().st_size / 2**20:.0f} MB, wanted at most "
            f"{limits.MOST_BYTES // 2**20} on this page; `lcv predict` takes any"
        )
    return read_picture(path)


def _video(path: Path) -> Chosen:
    """The first frames of a video."""
    with _decoder(path, job="info") as about:
        info = about.info()
    seconds = info["seconds"]
    if seconds is not None and seconds > limits.LONGEST_VIDEO:
        raise FileError(
            f"{path}: lasts {seconds:.0f} s, wanted at most {limits.LONGEST_VIDEO:.0f} on this page; "
            f"`lcv predict` takes videos of any length"
        )
    frames, given = [], (0, 0)
    with _decoder(path, only=frozenset(range(limits.MOST_FRAMES))) as decoder:
        for _, whole in decoder.frames():
            given = whole.shape[:2]
            frames.append(_reduced(whole, limits.SIDES[-1]))
    if len(frames) < 2:
        raise FileError(f"{path}: has one frame only, wanted two at least: flow needs two")
    note = f"The first {len(frames)} frames." if len(frames) == limits.MOST_FRAMES else ""
    rate = Fraction(info["rate"] or Chosen.rate)
    return Chosen(tuple(frames), path.name, note, given=given, rate=rate)


@contextmanager
def _decoder(path: Path, **options: Any) -> Iterator[Decoder]:
    """A video's decoder, a process of its own, which is ended if it takes too long."""
    source = Source("file", str(path))
    with decode(source, max_pixels=limits.MOST_PIXELS, **options) as decoder:
        alarm = threading.Timer(limits.DECODE_SECONDS, decoder.stop)
        alarm.daemon = True
        alarm.start()
        try:
            yield decoder
        except FileError:
            if not decoder.stopped:
                raise
        finally:
            alarm.cancel()
        if decoder.stopped:
            raise FileError(
                f"{path}: takes longer than {limits.DECODE_SECONDS:.0f} s to decode, which is too "
                f"long for this page"
            )


def _reduced(frame: np.ndarray, side: int) -> np.ndarray:
    height, width = frame.shape[:2]
    height, width = reduced_size(height, width, side)
    if (height, width) == frame.shape[:2]:
        return frame
    return np.array(Image.fromarray(frame).resize((width, height), Image.Resampling.LANCZOS))


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]}"


def _in_their_words(message: str, paths: Sequence[Path]) -> str:
    for path in paths:
        message = message.replace(str(path), path.name)
    # Readers advise programmers how to lift the limit, which nobody can do on the page.
    return message.partition("; make it smaller")[0]

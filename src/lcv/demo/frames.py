"""From uploaded files, or from a recipe, to the frames that the page works on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lcv.data.formats.decoder import Decoder, Source, decode
from lcv.demo import limits
from lcv.demo.picture import read_picture
from lcv.errors import ArgumentError, FileError, LcvError, ShapeError

FILMS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ogv", ".gif")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Frames of one size, (H, W, 3) uint8 each, and what is known about them.

    truth: (H, W, 2) flow from frame 0 to frame 1, and occluded: (H, W) bool, where they are ours
    note:  what is to be said about them, such as that they were reduced
    """

    frames: tuple[np.ndarray, ...]
    name: str
    note: str = ""
    truth: np.ndarray | None = None
    occluded: np.ndarray | None = None

    def pair(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Frame `position` and the next; the last pair where there is none so late."""
        first = min(max(int(position), 0), len(self.frames) - 2)
        return self.frames[first], self.frames[first + 1]


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
    """Two pictures or one film; errors name a file as its owner does, not by our folder."""
    if not paths:
        raise ArgumentError("no file came; drop two pictures or one film, or choose an example")
    films = [path for path in paths if path.suffix.lower() in FILMS]
    if len(paths) > 2 or (films and len(paths) > 1):
        raise ArgumentError(
            f"{len(paths)} files came, {len(films)} of them films; wanted two pictures or one film"
        )
    if len(paths) == 1 and not films:
        raise ArgumentError(
            f"{paths[0].name}: one picture came, wanted two; choose both at once, frame 1 first"
        )
    try:
        return _film(films[0]) if films else _pictures(paths)
    except LcvError as error:
        raise FileError(_in_their_words(str(error), paths)) from None


def _pictures(paths: Sequence[Path]) -> Chosen:
    frames = [_read(path) for path in paths]
    (first, second), sizes = frames, [_size(frame) for frame in frames]
    if first.shape != second.shape:
        raise ShapeError(
            f"{paths[0].name} is {sizes[0]} and {paths[1].name} is {sizes[1]} pixels; wanted two "
            f"frames of one size"
        )
    reduced = tuple(_reduced(frame) for frame in frames)
    return Chosen(reduced, f"{paths[0].name} and {paths[1].name}", _reduction(first, reduced[0]))


def _read(path: Path) -> np.ndarray:
    if path.stat().st_size > limits.MOST_BYTES:
        raise FileError(
            f"{path}: {path.stat().st_size / 2**20:.0f} MB, wanted at most "
            f"{limits.MOST_BYTES // 2**20} on this page; `lcv predict` takes any"
        )
    return read_picture(path)


def _film(path: Path) -> Chosen:
    """The first frames of a film."""
    with _decoder(path, job="info") as about:
        seconds = about.info()["seconds"]
    if seconds is not None and seconds > limits.LONGEST_FILM:
        raise FileError(
            f"{path}: lasts {seconds:.0f} s, wanted at most {limits.LONGEST_FILM:.0f} on this page; "
            f"`lcv predict` takes films of any length"
        )
    frames, whole = [], np.empty((0, 0))
    with _decoder(path, only=frozenset(range(limits.MOST_FRAMES))) as decoder:
        for _, whole in decoder.frames():
            frames.append(_reduced(whole))
    if len(frames) < 2:
        raise FileError(f"{path}: has one frame only, wanted two at least: flow needs two")
    note = f"The first {len(frames)} frames." if len(frames) == limits.MOST_FRAMES else ""
    return Chosen(tuple(frames), path.name, f"{note} {_reduction(whole, frames[0])}".strip())


@contextmanager
def _decoder(path: Path, **options: Any) -> Iterator[Decoder]:
    """A film's decoder, a process of its own, which is ended if it takes too long."""
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


def _reduced(frame: np.ndarray) -> np.ndarray:
    height, width = frame.shape[:2]
    share = limits.LONGEST_SIDE / max(height, width)
    if share >= 1:
        return frame
    size = max(1, round(share * width)), max(1, round(share * height))
    return np.array(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))


def _reduction(before: np.ndarray, after: np.ndarray) -> str:
    if before.shape[:2] == after.shape[:2]:
        return ""
    return f"Reduced from {_size(before)} to {_size(after)} pixels; `lcv predict` takes any size."


def _size(frame: np.ndarray) -> str:
    return f"{frame.shape[1]}×{frame.shape[0]}"


def _in_their_words(message: str, paths: Sequence[Path]) -> str:
    for path in paths:
        message = message.replace(str(path), path.name)
    # Readers advise programmers how to lift the limit, which nobody can do on the page.
    return message.partition("; make it smaller")[0]

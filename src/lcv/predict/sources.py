"""Sequences of frames, wherever they come from: files, a video, or a live stream.

Pair `i` of a sequence is frame `i` and the one after it. A frame that cannot be read is an error in
its place, so that the rest can go on. Every sequence has

    name           the folder of its outputs below each kind's, "" for none
    length         its frames; None where unknown
    is_live        whether it cannot be read a second time
    rate           frames a second
    files          that it is read from
    pair_name(i)   what the outputs of a pair are called, without ending
    file_of(i)     the file that frame i is read from; None where there is none
    frames(…)      frames start … stop − 1; a video may leave out those that are not of `only`
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from lcv.data.formats.decoder import Decoder, Source, decode
from lcv.data.formats.image import read_image
from lcv.errors import FileError, LcvError

USUAL_RATE = Fraction(25)  # of frames without times

Frames = Iterator["RawFrame"]
Only = frozenset[int] | None


@dataclass(frozen=True, eq=False)
class RawFrame:
    """Frame `index` of a sequence. label: in messages; read: gives it, or raises LcvError"""

    index: int
    label: str
    read: Callable[[], np.ndarray]

    @cached_property
    def image(self) -> np.ndarray:
        """(H, W, 3) uint8 RGB"""
        return self.read()


@dataclass(frozen=True)
class FrameFiles:
    """Frames in files of their own. names: of the pairs, one fewer than files"""

    name: str
    files: tuple[Path, ...]
    names: tuple[str, ...]

    rate = USUAL_RATE
    is_live = False

    @property
    def length(self) -> int:
        return len(self.files)

    def pair_name(self, pair: int) -> str:
        return self.names[pair]

    def file_of(self, frame: int) -> Path:
        return self.files[frame]

    def frames(self, start: int = 0, stop: int | None = None, only: Only = None) -> Frames:
        for index, path in enumerate(self.files[start:stop], start):
            yield RawFrame(index, str(path), partial(read_image, path))


@dataclass(frozen=True)
class Video:
    """Frames first, first + step, … of a video file, decoded in another process; pairs are named after them.

    A damaged one ends with an error.
    """

    name: str
    path: Path
    length: int | None = None
    rate: Fraction = USUAL_RATE
    first: int = 0
    step: int = 1

    is_live = False

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def opened(self) -> Video:
        """The same with its rate and length; its first frame decodes, or it is refused."""
        with decode(Source("file", str(self.path)), job="info") as decoder:
            info = decoder.info()
        rate = Fraction(info["rate"] or USUAL_RATE)
        if info["frames"] < 2:
            raise FileError(f"{self.path}: has one frame only; flow needs at least two")
        return replace(self, length=info["frames"], rate=rate if 0 < rate <= 1000 else USUAL_RATE)

    def pair_name(self, pair: int) -> str:
        return f"{self._number(pair):06d}"

    def file_of(self, frame: int) -> Path:
        return self.path

    def frames(self, start: int = 0, stop: int | None = None, only: Only = None) -> Frames:
        end = self.length if stop is None else stop
        options: dict[str, Any] = {
            "start": self._number(start),
            "stop": None if end is None else self._number(end - 1) + 1,
            "step": self.step,
        }
        if only is not None and len(only) < 100:  # fits on a command line
            options["only"] = frozenset(map(self._number, only))
        with decode(Source("file", str(self.path)), **options) as decoder:
            yield from _decoded(decoder, self.first, self.step, start, str(self.path))

    def _number(self, frame: int) -> int:
        """Of a frame in the file."""
        return self.first + self.step * frame


class Live:
    """A camera, or a stream on a pipe: read once, until it ends, or `most` frames; each `step`th."""

    length = None
    is_live = True
    rate = USUAL_RATE
    files = ()

    def __init__(self, name: str, source: Source, most: int | None = None, step: int = 1) -> None:
        self.name, self.source, self.most, self.step = name, source, most, step
        self._decoder: Decoder | None = None

    def pair_name(self, pair: int) -> str:
        return f"{pair:06d}"

    def file_of(self, frame: int) -> None:
        return None

    def frames(self, start: int = 0, stop: int | None = None, only: Only = None) -> Frames:
        with self._input() as stdin:
            stop = None if self.most is None else self.step * (self.most - 1) + 1
            self._decoder = Decoder(self.source, stop=stop, step=self.step, stdin=stdin)
            with closing(self._decoder):
                yield from _decoded(self._decoder, 0, self.step, 0, self.source.name)

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """While the block runs, Ctrl-C ends the stream and is not an error."""
        before = signal.signal(signal.SIGINT, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _stop(self, *_: object) -> None:
        if self._decoder is None:  # a named pipe has no writer yet
            raise KeyboardInterrupt
        self._decoder.stop()

    def _input(self) -> IO[bytes]:
        if self.source.kind == "pipe" and self.source.name != "-":
            return Path(self.source.name).open("rb")
        return open(sys.__stdin__.fileno() if sys.__stdin__ else 0, "rb", closefd=False)


Sequence = FrameFiles | Video | Live


def title(sequence: Sequence) -> str:
    """What a sequence is called in messages, and its clip."""
    return sequence.name or sequence.pair_name(0)


def _decoded(decoder: Decoder, first: int, step: int, start: int, label: str) -> Frames:
    """Frames `start` and on of those that are taken: first, first + step, … of the source."""
    index = start
    try:
        for number, image in decoder.frames():
            index = (number - first) // step
            yield RawFrame(index, f"{label} frame {number}", partial(np.asarray, image))
            index += 1
    except FileError as error:
        yield RawFrame(index, f"{label} frame {first + step * index}", partial(_refuse, error))


def _refuse(error: LcvError) -> np.ndarray:
    raise error

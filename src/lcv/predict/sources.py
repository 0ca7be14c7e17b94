"""Sequences of frames, wherever they come from: files, a film, or something that runs now.

A sequence is read from any frame on, one frame at a time. Pair `i` is frame `i` and the one after
it. A frame that cannot be read comes as an error in its place, so that the rest can go on.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np

from lcv.data.formats.image import read_image
from lcv.errors import FileError, LcvError
from lcv.predict.decoder import Decoder, Source, decode

# Of frames without times; what one plays folders of frames at.
USUAL_RATE = Fraction(25)
# Instead of the name of a pair: all pairs of what is one file, or none.
EVERY_PAIR = "*"
# Instead of a hash: of a file that cannot be read now, and of the frame before the first.
UNKNOWN, NO_FRAME = "?", "-"
# More pairs than there are.
ENDLESS = 1 << 62

HashOf = Callable[[Path], str]


def number_name(pair: int) -> str:
    """What a pair is called that has a number for a name."""
    return f"{pair:06d}"


@dataclass(frozen=True, eq=False)
class Still:
    """Frame `index` of a sequence: (H, W, 3) uint8 RGB, or why there is none.

    label: how messages call it
    """

    index: int
    label: str
    image: np.ndarray | None
    error: LcvError | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)"""
        assert self.image is not None
        return self.image.shape[0], self.image.shape[1]


class Sequence(Protocol):
    """name:   the folder of its outputs below each kind's, "" for none
    length:  frames, as far as is known before all are read; None where nothing is
    rate:    frames a second
    is_live: whether it cannot be read a second time
    """

    @property
    def name(self) -> str: ...

    @property
    def length(self) -> int | None: ...

    @property
    def rate(self) -> Fraction: ...

    @property
    def is_live(self) -> bool: ...

    def pair_name(self, pair: int) -> str:
        """What the outputs of a pair are called, without ending."""

    def made_from(self, hash_of: HashOf, pairs: int | None, chained: bool) -> dict[str, str]:
        """Hashes of the files that each of the first pairs is made from, by the pair's name.

        hash_of: see `fingerprint`; chained: of the frame before too, on which a warm start depends
        """

    def stills(self, start: int = 0, only: frozenset[int] | None = None) -> Iterator[Still]:
        """Frames from `start` on, or of them those of `only`."""


@dataclass(frozen=True)
class FrameFiles:
    """Frames in files of their own. names: of the pairs, one fewer than files"""

    name: str
    files: tuple[Path, ...]
    names: tuple[str, ...]
    rate: Fraction = USUAL_RATE
    is_live: bool = field(default=False, init=False)

    @property
    def length(self) -> int:
        return len(self.files)

    def pair_name(self, pair: int) -> str:
        return self.names[pair]

    def made_from(self, hash_of: HashOf, pairs: int | None, chained: bool) -> dict[str, str]:
        names = self.names[:pairs]
        hashes = [NO_FRAME, *map(hash_of, self.files[: len(names) + 1])]
        first = 0 if chained else 1
        return {name: " ".join(hashes[i + first : i + 3]) for i, name in enumerate(names)}

    def seconds(self, pairs: int | None) -> dict[str, str]:
        """Where the second frame of each of the first pairs lies, seen from the first."""
        neighbours = zip(self.names[:pairs], self.files, self.files[1:], strict=False)
        return {
            name: two.name if one.parent == two.parent else os.path.relpath(two, one.parent)
            for name, one, two in neighbours
        }

    def stills(self, start: int = 0, only: frozenset[int] | None = None) -> Iterator[Still]:
        for index, path in enumerate(self.files[start:], start):
            if only is not None and index not in only:
                continue
            try:
                yield Still(index, str(path), read_image(path))
            except LcvError as error:
                yield Still(index, str(path), None, error)


@dataclass(frozen=True)
class Film:
    """The frames of a video file, decoded elsewhere. A damaged one ends with an error."""

    name: str
    path: Path
    length: int | None
    rate: Fraction
    is_live: bool = field(default=False, init=False)

    def pair_name(self, pair: int) -> str:
        return number_name(pair)

    def made_from(self, hash_of: HashOf, pairs: int | None, chained: bool) -> dict[str, str]:
        return {EVERY_PAIR: hash_of(self.path)}

    def stills(self, start: int = 0, only: frozenset[int] | None = None) -> Iterator[Still]:
        with decode(Source("file", str(self.path)), start=start, only=only) as decoder:
            yield from _stills(decoder, start, str(self.path))


class Live:
    """A camera, or a stream on a pipe: seen once, of no known length, until it ends or `stop`."""

    length = None
    is_live = True

    def __init__(self, name: str, source: Source, rate: Fraction = USUAL_RATE) -> None:
        self.name, self.source, self.rate = name, source, rate
        self._decoder: Decoder | None = None

    def pair_name(self, pair: int) -> str:
        return number_name(pair)

    def made_from(self, hash_of: HashOf, pairs: int | None, chained: bool) -> dict[str, str]:
        return {EVERY_PAIR: UNKNOWN}

    def stills(self, start: int = 0, only: frozenset[int] | None = None) -> Iterator[Still]:
        with self._input() as stdin:
            self._decoder = Decoder(self.source, start=start, only=only, stdin=stdin)
            with closing(self._decoder):
                yield from _stills(self._decoder, start, self.source.name)

    def stop(self) -> None:
        """No more frames; those that were given stay."""
        if self._decoder is not None:
            self._decoder.stop()

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """An interrupt from the keyboard is its end, and no error, while the block runs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, lambda *_: self.stop())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _input(self) -> IO[bytes]:
        if self.source.kind == "pipe" and self.source.name != "-":
            return Path(self.source.name).open("rb")
        return open(sys.__stdin__.fileno() if sys.__stdin__ else 0, "rb", closefd=False)


def film(path: Path, name: str) -> Film:
    """A video, its head read and its first frame decoded to see that it is one."""
    with decode(Source("file", str(path)), job="info") as decoder:
        info = decoder.info()
    rate = Fraction(info["rate"]) if info["rate"] else USUAL_RATE
    frames = info["frames"]
    if frames is None and info["seconds"]:
        frames = max(2, round(info["seconds"] * rate))
    return Film(name, path, frames, rate if 0 < rate <= 1000 else USUAL_RATE)


def inputs_of(sequence: Sequence) -> tuple[Path, ...]:
    """The files that a sequence is read from."""
    if isinstance(sequence, FrameFiles):
        return sequence.files
    return (sequence.path,) if isinstance(sequence, Film) else ()


def any_possible(sequence: Sequence, pairs: Collection[int]) -> bool:
    """Whether, of these pairs, one has two frames that can be read and have one size."""
    if not pairs:
        return False
    frames = frozenset(pairs) | {pair + 1 for pair in pairs}
    before: Still | None = None
    with closing(cast(Any, sequence.stills(min(pairs), only=frames))) as stills:
        for still in stills:
            if before is not None and before.image is not None and still.image is not None:
                is_pair = (before.index + 1, before.size) == (still.index, still.size)
                if is_pair and before.index in pairs:
                    return True
            before = still
    return False


def fingerprint(path: Path) -> str:
    """A hash of all bytes of a file; UNKNOWN where it cannot be read."""
    if not path.is_file():  # opening a pipe would wait for its writer
        return UNKNOWN
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:20]
    except OSError:
        return UNKNOWN


def _stills(decoder: Decoder, start: int, label: str) -> Iterator[Still]:
    number = start
    try:
        for index, image in decoder.frames():
            yield Still(index, f"{label} frame {index}", image)
            number = index + 1
    except FileError as error:
        yield Still(number, f"{label} frame {number}", None, error)

"""Which frames of a sequence are taken, and which share of the work is done here."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from lcv.errors import ArgumentError
from lcv.predict.sources import FrameFiles, Live, Sequence, Video, title


class Selection(NamedTuple):
    """start, end: seconds of a video, at its average rate: frames from start on and before end

    every:  every Nth frame is taken
    frames: at most this many of them
    """

    start: Fraction = Fraction(0)
    end: Fraction | None = None
    every: int = 1
    frames: int | None = None

    def of(self, sequence: Sequence) -> Sequence:
        """The frames of a sequence that are taken; ArgumentError where those are fewer than two."""
        if self.start or self.end is not None:
            if not isinstance(sequence, Video):
                raise ArgumentError(
                    f"{title(sequence)}: --start and --end work for video files only; leave them out"
                )
            sequence = _between(sequence, self.start, self.end)
        taken = limited(_every(sequence, self.every), self.frames)
        if taken.length is not None and taken.length < 2:
            raise ArgumentError(
                f"{title(sequence)}: --every {self.every} leaves {taken.length} of its "
                f"{sequence.length} frames; flow needs at least two"
            )
        return taken


EVERYTHING = Selection()


class Shard(NamedTuple):
    """Share `number` of `total`, counted from 1."""

    number: int = 1
    total: int = 1


def limited(sequence: Sequence, frames: int | None) -> Sequence:
    """The first frames of a sequence; all without a number."""
    if frames is None:
        return sequence
    if isinstance(sequence, Live):
        return Live(sequence.name, sequence.source, frames, sequence.step)
    if isinstance(sequence, FrameFiles):
        return replace(sequence, files=sequence.files[:frames], names=sequence.names[: frames - 1])
    return replace(sequence, length=min(frames, sequence.length or frames))


def _between(video: Video, start: Fraction, end: Fraction | None) -> Video:
    assert video.length is not None
    first = math.ceil(start * video.rate)
    stop = video.length if end is None else min(video.length, math.ceil(end * video.rate))
    if stop - first < 2:
        lasts = float(video.length / video.rate)
        raise ArgumentError(
            f"{video.path}: fewer than two frames lie between --start and --end; it lasts "
            f"{lasts:.1f} s at {float(video.rate):.3g} frames a second"
        )
    return replace(video, first=first, length=stop - first)


def _every(sequence: Sequence, step: int) -> Sequence:
    if step == 1:
        return sequence
    if isinstance(sequence, Live):
        return Live(sequence.name, sequence.source, sequence.most, step)
    if isinstance(sequence, FrameFiles):
        files = sequence.files[::step]
        return replace(sequence, files=files, names=sequence.names[::step][: len(files) - 1])
    length = -(-(sequence.length or 0) // step)
    return replace(sequence, step=step, length=length, rate=sequence.rate / step)

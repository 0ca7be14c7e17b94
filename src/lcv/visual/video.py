"""Write a film frame by frame, in the memory of a few frames however long it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from lcv.errors import ArgumentError, FileError, ShapeError
from lcv.files import whole_file

# What x264 makes depends on its number of threads, so it is not left to the machine.
THREADS = 2
OPTIONS = {
    # Without mbtree, which for sizes that are no multiple of 16 reads memory it never wrote, so
    # that the bytes would differ from run to run.
    "libx264": {"preset": "veryfast", "crf": "20", "x264-params": "mbtree=0"},
    "mpeg4": {"q": "3"},
}


@contextmanager
def clip(
    path: str | os.PathLike[str], fps: float | Fraction, overwrite: bool = False
) -> Iterator[Callable[[np.ndarray], None]]:
    """An MP4 that appears whole when the block ends well, or not at all.

    with clip("flow.mp4", fps=25) as write:
        for frame in frames:
            write(frame)          # (H, W, 3) uint8 RGB, all of one size

    H.264 where the installed av has x264, else MPEG-4. Both need even sizes: an odd one is made
    even by repeating the last row or column. The same frames give the same bytes.
    """
    path = Path(path)
    if path.suffix.lower() != ".mp4":
        raise FileError(f"{path}: films are written as .mp4, not {path.suffix!r}; rename it")
    rate = _rate(fps)
    with whole_file(path, overwrite) as temporary:
        film = _Film(path, temporary, rate)
        try:
            yield film.write
            film.finish()
        finally:
            film.close()


class _Film:
    """The encoder and its file, opened at the first frame, which says the size."""

    def __init__(self, path: Path, temporary: Path, rate: Fraction) -> None:
        self.path, self.temporary, self.rate = path, temporary, rate
        self.shape: tuple[int, ...] | None = None
        self.container: Any = None
        self.stream: Any = None
        self.count = 0

    def write(self, frame: np.ndarray) -> None:
        import av

        frame = np.asarray(frame)
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8 or not frame.size:
            raise ShapeError(
                f"{self.path}: frame {self.count} has shape {frame.shape} of {frame.dtype}, wanted "
                f"(H, W, 3) of uint8"
            )
        if self.shape not in (None, frame.shape):
            assert self.shape is not None
            raise ShapeError(
                f"{self.path}: frame {self.count} is {frame.shape[1]}×{frame.shape[0]}, those "
                f"before are {self.shape[1]}×{self.shape[0]}; wanted one size for the whole film"
            )
        self.shape = frame.shape
        even = np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), "edge")
        with _told(self.path):
            if self.container is None:
                self._open(even)
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24")
            # HD's colours, said and done: a player that guesses would guess by the size.
            picture = picture.reformat(
                format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
            )
            picture.pts, picture.time_base = self.count, 1 / self.rate
            self._mux(self.stream.encode(picture))
        self.count += 1

    def finish(self) -> None:
        """What the encoder still holds, and the end of the file."""
        if self.container is None:
            raise FileError(f"{self.path}: not one frame was written, so there is no film")
        with _told(self.path):
            self._mux(self.stream.encode(None))
            container, self.container = self.container, None
            container.close()

    def close(self) -> None:
        """After an error: let go of the file, which is about to be removed."""
        if self.container is not None:
            import av

            with suppress(av.FFmpegError, OSError, ValueError):
                self.container.close()

    def _open(self, frame: np.ndarray) -> None:
        import av

        codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
        self.container = av.open(
            f"file:{self.temporary.absolute()}",
            "w",
            format="mp4",
            options={"fflags": "+bitexact", "movflags": "+faststart"},
        )
        self.stream = self.container.add_stream(codec, rate=self.rate, options=OPTIONS[codec])
        self.stream.height, self.stream.width = frame.shape[:2]
        self.stream.pix_fmt = "yuv420p"
        context = self.stream.codec_context
        context.time_base = 1 / self.rate
        context.thread_count = THREADS
        context.color_range = 1  # the narrow one, of films
        context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709

    def _mux(self, packets: list[Any]) -> None:
        for packet in packets:
            self.container.mux(packet)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What goes wrong in the encoder, as a sentence."""
    import av

    try:
        yield
    except (av.FFmpegError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: writing failed, nothing was left behind: {reason}") from error


def _rate(fps: float | Fraction) -> Fraction:
    try:
        rate = Fraction(fps).limit_denominator(1001)
    except (TypeError, ValueError, OverflowError):
        rate = Fraction(0)
    if not 0 < rate <= 1000:
        raise ArgumentError(f"clip: fps is {fps!r}, wanted frames a second between 0.001 and 1000")
    return rate

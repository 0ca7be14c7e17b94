"""Write a video frame by frame, in the memory of a few frames however long it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lcv.errors import ArgumentError, FileError, LcvError, ShapeError
from lcv.files import make_folder, sweep, whole_file

# What x264 makes depends on its number of threads, so it is not left to the machine.
THREADS = 2
OPTIONS = {
    # Without mbtree, which for sizes that are no multiple of 16 reads memory it never wrote, so
    # that the bytes would differ from run to run.
    "libx264": {"preset": "veryfast", "crf": "20", "x264-params": "mbtree=0"},
    "mpeg4": {"q": "3"},
    "libvpx-vp9": {"crf": "28", "b": "0", "deadline": "good", "cpu-used": "5"},
    "gif": {},
}
ENDINGS = {".mp4": ("libx264", "mpeg4"), ".webm": ("libvpx-vp9",), ".gif": ("gif",)}
"""What videos are written as, with the encoders of each, the best first."""
GIF_TICKS = Fraction(100)  # a second


@contextmanager
def clip(
    path: str | os.PathLike[str], fps: float | Fraction, overwrite: bool = False
) -> Iterator[Callable[[np.ndarray], None]]:
    """An MP4, WebM or GIF that appears whole when the block ends well, or not at all.

    with clip("flow.mp4", fps=25) as write:
        for frame in frames:
            write(frame)          # (H, W, 3) uint8 RGB, all of one size

    An MP4 has H.264 where the installed av has x264, else MPEG-4; a WebM has VP9. They need even
    sizes: an odd one is made even by repeating the last row or column. A GIF has 256 colours a
    frame, and at most 50 frames a second. The same frames give the same bytes.
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise FileError(f"{path}: videos are written as {known}, not {path.suffix!r}; rename it")
    rate = _rate(fps)
    if path.suffix.lower() == ".gif" and rate > GIF_TICKS / 2:
        raise ArgumentError(
            f"{path}: a GIF shows at most 50 frames a second, not {float(rate):g}; write .mp4 or .webm"
        )
    with whole_file(path, overwrite) as temporary:
        video = _Video(path, temporary, rate)
        try:
            yield video.write
            video.finish()
        finally:
            video.close()


class _Video:
    """The encoder and its file, opened at the first frame, which says the size."""

    def __init__(self, path: Path, temporary: Path, rate: Fraction) -> None:
        self.path, self.temporary, self.rate = path, temporary, rate
        self.ending = path.suffix.lower()
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
                f"before are {self.shape[1]}×{self.shape[0]}; wanted one size for the whole video"
            )
        self.shape = frame.shape
        with _told(self.path):
            if self.ending == ".gif":
                picture = _with_palette(frame)
                picture.pts = round(self.count * GIF_TICKS / self.rate)
            else:
                odd = ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0))
                even = np.ascontiguousarray(np.pad(frame, odd, "edge"))
                # HD's colours, said and done: a player that guesses would guess by the size.
                picture = av.VideoFrame.from_ndarray(even, format="rgb24").reformat(
                    format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
                )
                picture.pts = self.count
            if self.container is None:
                self._open(picture)
            picture.time_base = self.stream.codec_context.time_base
            self._mux(self.stream.encode(picture))
        self.count += 1

    def finish(self) -> None:
        """What the encoder still holds, and the end of the file."""
        if self.container is None:
            raise FileError(f"{self.path}: not one frame was written, so there is no video")
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

    def _open(self, picture: Any) -> None:
        import av

        codecs = [each for each in ENDINGS[self.ending] if each in av.codecs_available]
        if not codecs:
            raise FileError(f"{self.path}: the installed av cannot encode this; write .mp4 instead")
        last = str(round(GIF_TICKS / self.rate))  # how long a GIF shows its last frame
        more = {".mp4": {"movflags": "+faststart"}, ".gif": {"final_delay": last}}
        self.container = av.open(
            f"file:{self.temporary.absolute()}",
            "w",
            format=self.ending[1:],
            options={"fflags": "+bitexact", **more.get(self.ending, {})},
        )
        rate = GIF_TICKS if self.ending == ".gif" else self.rate
        self.stream = self.container.add_stream(codecs[0], rate=rate, options=OPTIONS[codecs[0]])
        self.stream.height, self.stream.width = picture.height, picture.width
        self.stream.pix_fmt = picture.format.name
        context = self.stream.codec_context
        context.time_base = 1 / rate
        context.thread_count = THREADS
        if self.ending == ".gif":
            return
        context.color_range = 1  # the narrow one, of television
        context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709

    def _mux(self, packets: list[Any]) -> None:
        for packet in packets:
            self.container.mux(packet)


def _with_palette(frame: np.ndarray) -> Any:
    """A frame in the 256 colours that suit it."""
    import av

    few = Image.fromarray(frame).quantize(256, method=Image.Quantize.FASTOCTREE)
    palette = np.full((256, 4), 255, np.uint8)  # opaque
    colours = np.array(few.getpalette(), np.uint8).reshape(-1, 3)
    palette[: len(colours), 1:] = colours
    return av.VideoFrame.from_ndarray((np.asarray(few), palette), format="pal8")  # type: ignore[arg-type]


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


class ClipWriter(ExitStack):
    """A clip that is opened with its first frame, and appears when the block ends well.

    failed: why it was given up, since frames change their size; the job goes on without it
    """

    def __init__(self, path: Path, rate: Fraction, overwrite: bool) -> None:
        super().__init__()
        self.path, self.rate, self.overwrite = path, rate, overwrite
        self.failed: LcvError | None = None
        self.count = 0

    def write(self, frame: np.ndarray) -> None:
        """Add a frame."""
        if self.failed is not None:
            return
        if not self.count:
            make_folder(self.path.parent)
            sweep([self.path])
            self._write = self.enter_context(clip(self.path, self.rate, self.overwrite))
            self._shape = frame.shape
        if frame.shape == self._shape:
            self._write(frame)
            self.count += 1
            return
        self.failed = LcvError(
            f"{self.path}: no clip, since frames change their size: {self.count} were "
            f"{self._shape[1]}×{self._shape[0]} as shown, then {frame.shape[1]}×{frame.shape[0]}"
        )
        # An error closes the clip and removes what there is of it.
        self.__exit__(LcvError, self.failed, None)

"""Read a video frame by frame, in the memory of a few frames however long it is.

A decoder of videos is a large program that meets hostile data: for files that cannot be trusted,
run this in a process of its own. Only files on disk are opened, and only by the demuxers named
below: playlists and scripts, which make a demuxer open other files or addresses, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from lcv.data.formats.animation import is_webp, webp_as_png
from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_pixels,
    check_unpacked,
    file_size,
    read_start,
)
from lcv.data.formats.extent import check_extent
from lcv.errors import FileError

DEMUXERS = "mov,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,gif,apng,yuv4mpegpipe"
ATTACHED_PICTURE = 0x400  # the cover of a song, which is a video stream of one frame


@dataclass(frozen=True)
class VideoInfo:
    """What a video says of itself. Sizes are those of the frames that `read_video` gives."""

    width: int
    height: int
    frames: int | None
    """As declared, None where the file does not say; only decoding tells for certain."""
    rate: Fraction | None
    """Frames a second on average; the true times are in `timed_frames`."""
    seconds: float | None
    rotation: int
    """Quarter turns already carried out, in degrees counter-clockwise: 0, 90, 180 or 270."""
    codec: str


def read_video(
    path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS
) -> Iterator[np.ndarray]:
    """Frames of a video, (H, W, 3) uint8 RGB each, upright, one by one as they are asked for.

    Every frame of the file comes once, whatever the time between frames is: none is doubled or
    dropped to keep a rate. A rotation in the file is carried out. A file that is cut, that has no
    video, or whose frames are damaged or change their size is refused with FileError, which for a
    late frame means after the earlier ones were given.
    """
    for _, frame in timed_frames(path, max_pixels):
        yield frame


def timed_frames(
    path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS
) -> Iterator[tuple[float | None, np.ndarray]]:
    """(seconds since the start of the video, frame) for every frame; see `read_video`."""
    path = Path(path)
    with opened(path, max_pixels) as (container, stream):
        frame, converter = None, VideoReformatter()
        for frame in of_one_size(path, decoded(path, container, stream), max_pixels):
            yield frame.time, upright(path, frame, converter)
        if frame is None:
            raise FileError(f"{path}: has a video stream but not one frame; the file is damaged")


def video_info(path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS) -> VideoInfo:
    """Size, number of frames, rate and length of a video; decodes its first frame only."""
    path = Path(path)
    with opened(path, max_pixels) as (container, stream):
        first = next(decoded(path, container, stream), None)
        if first is None:
            raise FileError(f"{path}: has a video stream but not one frame; the file is damaged")
        check_pixels(path, first.width, first.height, max_pixels)
        height, width = (
            (first.width, first.height) if _turns(path, first) % 2 else (first.height, first.width)
        )
        seconds = None
        if stream.duration is not None and stream.time_base:
            seconds = float(stream.duration * stream.time_base)
        elif container.duration is not None:
            seconds = container.duration / av.time_base
        return VideoInfo(
            width=width,
            height=height,
            frames=stream.frames or None,
            rate=stream.average_rate,
            seconds=seconds,
            rotation=90 * _turns(path, first),
            codec=stream.codec_context.name,
        )


@contextmanager
def opened(path: Path, max_pixels: int) -> Iterator[tuple[Any, Any]]:
    """The container and the video stream of a video, with its limits set."""
    size = file_size(path, "a video file")
    check_extent(path, size)
    # With "file:" before it, no name is taken for an address or a pattern.
    source: Any = f"file:{path.absolute()}"
    if is_webp(read_start(path, 12)):
        source = webp_as_png(path, max_pixels)
    try:
        container = av.open(
            source,
            metadata_errors="replace",
            options={"format_whitelist": DEMUXERS, "protocol_whitelist": "file"},
        )
    except (av.FFmpegError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(
            f"{path}: not a video that can be read ({size} bytes): {reason}; wanted MP4, MOV, "
            f"Matroska, WebM, AVI or another common kind, whole"
        ) from None
    with container:
        streams = [s for s in container.streams.video if not int(s.disposition) & ATTACHED_PICTURE]
        if not streams:
            kinds = ", ".join(sorted({str(s.type) for s in container.streams}))
            raise FileError(f"{path}: has no video stream, only {kinds or 'nothing'}")
        stream = streams[0]
        if stream.codec_context is None:
            raise FileError(f"{path}: its video is coded in a way that cannot be decoded here")
        declared = stream.codec_context.width, stream.codec_context.height
        if min(declared) > 0:
            check_pixels(path, *declared, max_pixels)
            check_unpacked(path, size, 3 * declared[0] * declared[1])  # one frame
        # For sizes that change on the way. Decoders count their padding, hence the room.
        stream.codec_context.options = {"max_pixels": str(4 * max_pixels + 2**20)}
        yield container, stream


def decoded(path: Path, container: Any, stream: Any) -> Iterator[Any]:
    """Frames of an open video, as the decoder gives them; damage is a `FileError`. path: for words"""
    number = 0
    try:
        for packet in container.demux(stream):
            for frame in packet.decode():
                if packet.is_corrupt or frame.is_corrupt:
                    raise FileError(f"{path}: damaged video at frame {number}; fetch it again")
                yield frame
                number += 1
            if packet.is_corrupt:
                raise FileError(f"{path}: damaged video after frame {number}; fetch it again")
    except (av.FFmpegError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: damaged video at frame {number}: {reason}") from None


def of_one_size(path: Path, frames: Iterator[Any], max_pixels: int) -> Iterator[Any]:
    """The frames of a video from its beginning; too large a size, or another one, is refused."""
    size = None
    for number, frame in enumerate(frames):
        check_pixels(path, frame.width, frame.height, max_pixels)
        if size not in (None, (frame.width, frame.height)):
            raise FileError(
                f"{path}: frame {number} is {frame.width}×{frame.height}, those before are "
                f"{size[0]}×{size[1]}; cut the video where its size changes"
            )
        size = frame.width, frame.height
        yield frame


def _turns(path: Path, frame: Any) -> int:
    """Quarter turns, counter-clockwise, that the file asks a player to make."""
    if frame.rotation % 90:
        raise FileError(
            f"{path}: asks to be turned by {frame.rotation} degrees, wanted a multiple of 90"
        )
    return frame.rotation // 90 % 4


def upright(path: Path, frame: Any, converter: VideoReformatter) -> np.ndarray:
    """A decoded frame as (H, W, 3) uint8 RGB, rotated as the video asks.

    path: for error messages; converter: one for all frames of a video, since it is slow to set up
    """
    turns = _turns(path, frame)
    try:
        # In one thread: more gain little, and take time from the decoder's threads.
        rgb = converter.reformat(frame, format="rgb24", threads=1).to_ndarray()
    except (av.FFmpegError, ValueError) as error:
        raise FileError(f"{path}: a frame cannot be turned into RGB: {error}") from None
    return np.ascontiguousarray(np.rot90(rgb, turns) if turns else rgb)

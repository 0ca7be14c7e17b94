"""Any frames of a video without decoding all that come before them.

A video is decoded once, without its colours, to learn when each frame is shown and which are key
frames; then frames are reached from the key frame before them. Where times are missing, double or
not kept after a jump, the video is decoded from its beginning, as `read_video` does: that is the
slow and certain way, and what comes out is the same. What `read_video` refuses is refused, too, and
already when the times are learned: so is a video whose frames change their size further on.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from lcv.data.formats.checks import LIMIT_PIXELS
from lcv.data.formats.video import decoded, of_one_size, opened, upright
from lcv.errors import FileError


class Times(NamedTuple):
    """When each frame is shown, in ticks of the stream; the numbers of the key frames; and the
    width and height of all frames."""

    shown: tuple[int, ...]
    keys: tuple[int, ...]
    size: tuple[int, int]


def frames_at(
    path: str | os.PathLike[str], first: int, count: int = 1, max_pixels: int = LIMIT_PIXELS
) -> list[np.ndarray]:
    """Frames first … first + count − 1 of a video, counted from 0: (H, W, 3) uint8 RGB, upright."""
    path, converter = Path(path), VideoReformatter()
    seen = path.stat() if path.is_file() else None
    times = seen and _times(path, seen.st_size, seen.st_mtime_ns, max_pixels)
    with opened(path, max_pixels) as (container, stream):
        found = list(_after_jump(container, stream, times, first, count)) if times else []
        if len(found) == count:
            return [upright(path, frame, converter) for frame in found]
    with opened(path, max_pixels) as (container, stream):
        every = of_one_size(path, decoded(path, container, stream), max_pixels)
        images = [upright(path, frame, converter) for frame in islice(every, first, first + count)]
    if len(images) < count:
        raise FileError(f"{path}: has no frame {first + count - 1}; it ends earlier")
    return images


@functools.lru_cache(maxsize=64)
def _times(path: Path, _size: int, _changed: int, max_pixels: int) -> Times | None:
    """None if frames cannot be told by their times. Size and time of the file: for the cache."""
    shown, keys, size = [], [], (0, 0)
    with opened(path, max_pixels) as (container, stream):
        every = of_one_size(path, decoded(path, container, stream), max_pixels)
        for number, frame in enumerate(every):
            size = frame.width, frame.height
            shown.append(frame.pts)
            if frame.key_frame:
                keys.append(number)
    if None in shown or not keys or keys[0] != 0 or any(b <= a for a, b in pairwise(shown)):
        return None
    return Times(tuple(shown), tuple(keys), size)


def _after_jump(container: Any, stream: Any, times: Times, first: int, count: int) -> Iterator[Any]:
    """The frames wanted, as far as they come whole and at their times after the key frame."""
    shown, keys, size = times
    wanted = list(shown[first : first + count])
    if len(wanted) < count:
        return
    key = keys[bisect_right(keys, first) - 1]
    try:
        container.seek(shown[key], stream=stream)
        for packet in container.demux(stream):
            for frame in packet.decode():
                if frame.pts is None or frame.pts > wanted[0] or frame.is_corrupt:
                    return
                if (frame.width, frame.height) != size:
                    return
                if frame.pts == wanted[0]:
                    yield frame
                    wanted.pop(0)
                    if not wanted:
                        return
    except (av.FFmpegError, ValueError):
        return  # the slow way will say what is wrong, if anything is

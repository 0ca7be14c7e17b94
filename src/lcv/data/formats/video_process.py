"""The program that decodes videos, cameras and pipes; `lcv.data.formats.decoder` starts it.

It writes a record for each frame to standard output. The pixels go into memory shared by both
processes or, where there is none, down the same pipe. Except on Windows, it cannot write a byte to
a file. It is not a sandbox: it could still delete or empty files. It ends when nobody reads its
output. Importing this module does not load PyAV; running it does.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lcv.errors import FileError
from lcv.threads import Behind

# A record: its kind, the number of the frame or the length of a text, slot, height and width.
HEAD = struct.Struct("<cqiii")
FRAME, ROOM, INFO, ERROR, END = b"F", b"R", b"I", b"E", b"Z"
SLOTS = 5  # frames in shared memory
AHEAD = 2  # frames that may be decoded and not yet sent
# Formats a pipe may carry in addition to those of video files: series of pictures, bare streams.
PIPED = "mjpeg,image2pipe,jpeg_pipe,png_pipe,ppm_pipe,pgm_pipe,bmp_pipe,webp_pipe,h264,hevc,m4v,nut"
PROBED = 1 << 16


def main(order: dict[str, Any]) -> None:
    """Decode as ordered. The last record says that all went well, or what went wrong."""
    from av.video.reformatter import VideoReformatter

    from lcv.data.formats import video

    out = sys.stdout.buffer
    _forbid_files()

    def say(kind: bytes, text: str) -> None:
        out.write(HEAD.pack(kind, len(text.encode()), 0, 0, 0) + text.encode())

    try:
        if order["job"] == "info":
            info = video.video_info(order["name"], order["max_pixels"])
            rate = None if info.rate is None else str(info.rate)
            say(INFO, json.dumps({**info.__dict__, "rate": rate, "frames": _count(order)}))
        else:
            only = None if order["only"] is None else set(order["only"])
            start, step = order["start"], order["step"]
            stop = order["stop"] if only is None else max(only, default=-1) + 1
            send, converter = _sender(out, order["shared"]), VideoReformatter()
            name = Path(order["name"])

            def convert_and_send(number: int, frame: Any) -> None:
                # Not kept in a variable, so that its memory is reused for the next frame.
                send(number, video.upright(name, frame, converter))

            with Behind(AHEAD) as behind:  # the next frames are decoded meanwhile
                for number, frame in enumerate(islice(_frames(order), stop)):
                    is_in_range = number >= start and (number - start) % step == 0
                    if is_in_range and (only is None or number in only):
                        behind.do(partial(convert_and_send, number, frame))
        out.write(HEAD.pack(END, 0, 0, 0, 0))
    except FileError as error:
        say(ERROR, str(error))
    out.flush()


def _sender(out: Any, shared: list[int]) -> Callable[[int, np.ndarray], None]:
    """A function that sends a frame through shared memory, or down the pipe if there is none.

    shared: the memory, and a pipe that gives the number of each slot that may be written to
    """
    memory: mmap.mmap | None = None

    def send(number: int, frame: np.ndarray) -> None:
        nonlocal memory
        slot = b"\0"
        if shared and memory is None:
            out.write(HEAD.pack(ROOM, frame.nbytes, 0, 0, 0))
            out.flush()
        if shared and not (slot := os.read(shared[1], 1)):  # waits for a free slot
            raise BrokenPipeError
        if shared and memory is None:
            memory = mmap.mmap(shared[0], SLOTS * frame.nbytes)
        if memory is not None:
            place = np.frombuffer(memory, np.uint8, frame.nbytes, slot[0] * frame.nbytes)
            place.reshape(frame.shape)[:] = frame
        out.write(HEAD.pack(FRAME, number, slot[0], *frame.shape[:2]))
        if memory is None:
            out.write(frame.data)
        out.flush()

    return send


def _count(order: dict[str, Any]) -> int:
    """The frames of a file at most: its packets, which are not decoded. Some may never be shown."""
    from lcv.data.formats import video

    with video.opened(Path(order["name"]), order["max_pixels"]) as (container, stream):
        return sum(p.size > 0 and not p.is_discard for p in container.demux(stream))


def _frames(order: dict[str, Any]) -> Iterator[Any]:
    """Frames as the library gives them, of one size."""
    from lcv.data.formats import video

    name, limit, frame = Path(order["name"]), order["max_pixels"], None
    with contextlib.ExitStack() as stack:
        if order["kind"] == "file":
            container, stream = stack.enter_context(video.opened(name, limit))
            stream.thread_type = "AUTO"  # frames in parallel; delays them, so not for what is live
        else:
            container = stack.enter_context(_opened(order["kind"], order["name"]))
            if not container.streams.video:
                raise FileError(f"{name}: has no video stream")
            stream = container.streams.video[0]
        for frame in video.of_one_size(name, video.decoded(name, container, stream), limit):
            yield frame
        if frame is None:
            raise FileError(f"{name}: has a video stream but not one frame; it is damaged")


def _opened(kind: str, name: str) -> Any:
    import av

    from lcv.data.formats import video

    try:
        if kind == "camera":
            return av.open(f"/dev/video{name.partition(':')[2]}", format="v4l2")
        options = {
            "format_whitelist": f"{video.DEMUXERS},{PIPED}",
            "protocol_whitelist": "pipe",
            # What is looked at before the first frame is given: a stream that runs now cannot wait.
            "probesize": str(PROBED),
            "fpsprobesize": "0",
        }
        return av.open("pipe:0", metadata_errors="replace", options=options)
    except (av.FFmpegError, ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        if kind == "camera":
            raise FileError(f"{name}: the camera cannot be opened: {reason}") from None
        raise FileError(
            f"{name}: not a stream that can be read: {reason}; wanted YUV4MPEG, Matroska, MJPEG, "
            f"or PNG pictures one after another, as `ffmpeg -i … -f yuv4mpegpipe -` writes"
        ) from None


def _forbid_files() -> None:
    """From now on this process can write to its pipe, but no byte to a file, and leaves no core.

    It still runs as its user, and may delete or empty files: this is no sandbox.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(json.loads(sys.argv[1]))

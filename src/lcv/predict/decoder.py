"""Films, cameras and pipes, decoded in a process of its own: a decoder that dies takes only itself.

`decode` starts this very file as a program and reads frames from it through a pipe, which holds
the decoder back while nobody asks: a film of any length takes the memory of a few frames. The
program loads neither torch nor this package's other modules, writes no file, and ends when nobody
listens any more.
"""

from __future__ import annotations

import contextlib
import json
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lcv.data.formats.checks import LIMIT_PIXELS
from lcv.errors import FileError

# A record: its kind, the number of the frame or the length of a text, height and width.
HEAD = struct.Struct("<cqii")
FRAME, INFO, ERROR, END = b"F", b"I", b"E", b"Z"
# What a pipe may carry beside the films that files may: pictures one after another, bare streams.
PIPED = "mjpeg,image2pipe,jpeg_pipe,png_pipe,ppm_pipe,pgm_pipe,bmp_pipe,webp_pipe,h264,hevc,m4v,nut"
PROBED = 1 << 16


class Source(NamedTuple):
    """kind: "file", "pipe" (the standard input) or "camera"; name: its path, or what to call it"""

    kind: str
    name: str


class Decoder:
    """A running decoder. `frames` gives (number, (H, W, 3) uint8 RGB); `stop` ends it at once."""

    def __init__(
        self,
        source: Source,
        *,
        start: int = 0,
        only: frozenset[int] | None = None,
        max_pixels: int = LIMIT_PIXELS,
        job: str = "frames",
        stdin: IO[bytes] | None = None,
    ) -> None:
        self.source = source
        order = {
            "kind": source.kind,
            "name": source.name,
            "job": job,
            "start": start,
            "only": None if only is None else sorted(only),
            "max_pixels": max_pixels,
        }
        self.words = tempfile.TemporaryFile()  # noqa: SIM115
        self.stopped = False
        self.process = subprocess.Popen(
            # -P: the folder of this file is no place to import from.
            [sys.executable, "-P", __file__, json.dumps(order)],
            stdin=(stdin or sys.stdin) if source.kind == "pipe" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.words,
            # A key press that interrupts us is ours to answer.
            start_new_session=True,
        )

    def frames(self) -> Iterator[tuple[int, np.ndarray]]:
        """Frames one by one; FileError where the source is damaged or its decoder dies."""
        for kind, number, content in self._records():
            if kind == FRAME:
                yield number, content

    def info(self) -> dict[str, Any]:
        """What the source says of itself: the fields of `VideoInfo`."""
        for kind, _, content in self._records():
            if kind == INFO:
                return dict(json.loads(content))
        raise FileError(f"{self.source.name}: its decoder said nothing")

    def stop(self) -> None:
        """End the decoder; frames that were not asked for are lost."""
        self.stopped = True
        self.process.kill()

    def close(self) -> None:
        """End the decoder if it is still at work, and let go of what it held."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.words.close()

    def _records(self) -> Iterator[tuple[bytes, int, Any]]:
        seen = 0
        while True:
            head = self._read(HEAD.size)
            if len(head) < HEAD.size:
                if self.stopped:
                    return
                raise FileError(self._obituary(seen))
            kind, number, height, width = HEAD.unpack(head)
            if kind == END:
                return
            length = 3 * height * width if kind == FRAME else number
            content = self._read(length)
            if len(content) < length:
                if self.stopped:
                    return
                raise FileError(self._obituary(seen))
            if kind == ERROR:
                raise FileError(content.decode())
            if kind == FRAME:
                seen = number + 1
                yield kind, number, np.frombuffer(content, np.uint8).reshape(height, width, 3)
            else:
                yield kind, number, content

    def _read(self, length: int) -> bytearray:
        content = bytearray(length)
        window, filled = memoryview(content), 0
        assert self.process.stdout is not None
        while filled < length:
            count = self.process.stdout.readinto(window[filled:])  # type: ignore[attr-defined]
            if not count:
                return content[:filled]
            filled += count
        return content

    def _obituary(self, seen: int) -> str:
        code = self.process.wait()
        self.words.seek(0)
        last = self.words.read()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        return (
            f"{self.source.name}: its decoder died {how} after {seen} frames"
            f"{': ' + last if last else ''}; the file is damaged, or made to do harm"
        )


@contextlib.contextmanager
def decode(source: Source, **options: Any) -> Iterator[Decoder]:
    """A decoder at work while the block runs."""
    decoder = Decoder(source, **options)
    try:
        yield decoder
    finally:
        decoder.close()


def main(order: dict[str, Any]) -> None:
    """The program: does as it is told, and says what went wrong as the last of its records."""
    from lcv.data.formats import video

    out = sys.stdout.buffer
    _forbid_files()
    try:
        if order["job"] == "info":
            text = json.dumps(_info(video.video_info(order["name"], order["max_pixels"])))
            out.write(HEAD.pack(INFO, len(text.encode()), 0, 0) + text.encode())
        else:
            only = None if order["only"] is None else set(order["only"])
            for number, frame in enumerate(_frames(order, video)):
                if number >= order["start"] and (only is None or number in only):
                    out.write(HEAD.pack(FRAME, number, *frame.shape[:2]))
                    out.write(np.ascontiguousarray(frame).data)
                    # A camera's frame is wanted now.
                    out.flush()
                if only is not None and number >= max(only, default=0):
                    break
        out.write(HEAD.pack(END, 0, 0, 0))
    except FileError as error:
        text = str(error)
        out.write(HEAD.pack(ERROR, len(text.encode()), 0, 0) + text.encode())
    out.flush()


def _frames(order: dict[str, Any], video: Any) -> Iterator[np.ndarray]:
    if order["kind"] == "file":
        yield from video.read_video(order["name"], order["max_pixels"])
        return
    name, limit = Path(order["name"]), order["max_pixels"]
    with _opened(order["kind"], order["name"], video) as container:
        if not container.streams.video:
            raise FileError(f"{name}: has no video stream")
        size = None
        frames = video.decoded(name, container, container.streams.video[0])
        for number, frame in enumerate(frames):
            video.check_pixels(name, frame.width, frame.height, limit)
            if size not in (None, (frame.width, frame.height)):
                raise FileError(
                    f"{name}: frame {number} is {frame.width}×{frame.height}, those before are "
                    f"{size[0]}×{size[1]}; wanted one size for the whole stream"
                )
            size = frame.width, frame.height
            yield video.upright(name, frame)
        if size is None:
            raise FileError(f"{name}: ended without one frame")


def _opened(kind: str, name: str, video: Any) -> Any:
    import av

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


def _info(info: Any) -> dict[str, Any]:
    rate = None if info.rate is None else str(info.rate)
    return {**info.__dict__, "rate": rate}


def _forbid_files() -> None:
    """From now on this process can write to its pipe, but to no file, and leaves no core."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(json.loads(sys.argv[1]))

"""Decode videos, cameras and pipes in a separate process, so that a crash ends only that process.

`decode` starts the program `lcv.data.formats.video_process`. Only a few frames are in memory at a
time, however long the video is.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from lcv.data.formats import video_process
from lcv.data.formats.checks import LIMIT_PIXELS
from lcv.data.formats.video_process import END, ERROR, FRAME, HEAD, INFO, ROOM, SLOTS
from lcv.errors import FileError

# Frames that a caller may hold in shared memory: the two of a pair, and the first of each of the two
# pairs before, which may still be written. The decoder has the other slot.
LENT = 4


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
        stop: int | None = None,
        step: int = 1,
        only: frozenset[int] | None = None,
        max_pixels: int = LIMIT_PIXELS,
        job: str = "frames",
        stdin: IO[bytes] | None = None,
    ) -> None:
        self.source = source
        self.stopped = False
        self.memory: mmap.mmap | None = None
        self.lent: set[int] = set()
        self.lock = threading.RLock()  # a frame can be released wherever Python tidies up
        # The shared memory, and a pipe with the numbers of its free slots, a byte each.
        self.shared: tuple[int, ...] = ()
        if hasattr(os, "memfd_create"):
            self.shared = os.memfd_create("frames"), *os.pipe()
        order = {
            "kind": source.kind,
            "name": source.name,
            "job": job,
            "start": start,
            "stop": stop,
            "step": step,
            "only": None if only is None else sorted(only),
            "max_pixels": max_pixels,
            "shared": self.shared[:2],
        }
        self.words = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            # -P: the folder of this program is no place to import from.
            [sys.executable, "-P", video_process.__file__, json.dumps(order)],
            stdin=(stdin or sys.stdin) if source.kind == "pipe" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.words,
            # A key press that interrupts us is ours to answer.
            start_new_session=True,
            pass_fds=self.shared[:2],
            # It multiplies no matrices; threads for that would spin for a tenth of a second.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
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
        with self.lock:  # frames may be released by other threads
            for each in self.shared:
                os.close(each)
            self.shared = ()

    def _records(self) -> Iterator[tuple[bytes, int, Any]]:
        seen = 0
        try:
            while True:
                kind, number, slot, height, width = HEAD.unpack(self._read(HEAD.size))
                if kind == END:
                    return
                if kind == ROOM:
                    os.ftruncate(self.shared[0], SLOTS * number)
                    self.memory = mmap.mmap(self.shared[0], SLOTS * number)
                    for free in range(SLOTS):
                        self._release(free)
                elif kind == FRAME:
                    seen = number + 1
                    # In no variable of ours: the slot is free as soon as the caller drops it.
                    yield kind, number, self._frame(slot, height, width)
                else:
                    content = self._read(number)
                    if kind == ERROR:
                        raise FileError(content.decode())
                    yield kind, number, content
        except EOFError:
            if not self.stopped:
                raise FileError(self._death_message(seen)) from None

    def _frame(self, slot: int, height: int, width: int) -> np.ndarray:
        """The frame itself in shared memory, whose slot is free once nothing refers to the frame.

        A caller who holds LENT frames already gets a copy, so that the decoder can always go on.
        """
        length = 3 * height * width
        if self.memory is None:
            return np.frombuffer(self._read(length), np.uint8).reshape(height, width, 3)
        place = np.frombuffer(self.memory, np.uint8, length, slot * length)
        frame = place.reshape(height, width, 3)
        if len(self.lent) < LENT:
            self.lent.add(slot)
            weakref.finalize(place, self._release, slot)  # all views of the frame refer to it
            return frame
        frame = frame.copy()
        self._release(slot)
        return frame

    def _release(self, slot: int) -> None:
        self.lent.discard(slot)
        # Where the decoder has ended, it needs no slot.
        with self.lock, contextlib.suppress(BrokenPipeError):
            if self.shared:
                os.write(self.shared[2], bytes([slot]))

    def _read(self, length: int) -> bytearray:
        content = bytearray(length)
        window, filled = memoryview(content), 0
        assert self.process.stdout is not None
        while filled < length:
            count = self.process.stdout.readinto(window[filled:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError
            filled += count
        return content

    def _death_message(self, seen: int) -> str:
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

"""Sequences: frames in order, from any frame on, with errors in their places."""

from __future__ import annotations

import os
import signal
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.decoder import Source
from lcv.errors import FileError
from lcv.predict.selection import Selection
from lcv.predict.sources import FrameFiles, Live, Video, title
from testing.footage import moving, save_film, save_frames


def test_a_bad_frame_comes_as_an_error_in_its_place(tmp_path):
    folder = save_frames(tmp_path, 3)
    (folder / "frame_2.png").write_bytes(b"no picture")
    first, second, third = find_inputs([str(folder)]).sequences[0].frames()
    with pytest.raises(FileError, match=r"frame_2\.png: not an image"):
        _ = second.image
    assert first.image.shape == third.image.shape == (64, 72, 3)
    assert third.index == 2


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_a_video_is_read_from_any_frame_on(tmp_path, name):
    video = Video("a", save_film(tmp_path / name, 6)).opened()
    assert (video.length, video.rate, video.pair_name(3)) == (6, 10, "000003")
    whole = list(video.frames())
    assert [frame.index for frame in whole] == list(range(6))
    late, middle = list(video.frames(4)), list(video.frames(2, 4))
    some = list(video.frames(only=frozenset((1, 3))))
    for frame in (*late, *middle, *some):
        assert np.array_equal(frame.image, whole[frame.index].image)
    assert [frame.index for frame in (*late, *middle, *some)] == [4, 5, 2, 3, 1, 3]
    if name.endswith(".mkv"):  # which is without loss
        assert all(np.array_equal(s.image, f) for s, f in zip(whole, moving(6), strict=True))


def test_a_pipe_gives_the_frames_that_were_sent(tmp_path):
    """PNG pictures one after another, as `cat frames/*.png` sends them; here every second is taken."""
    folder = save_frames(tmp_path / "a", 6)
    content = b"".join((folder / f"frame_{n}.png").read_bytes() for n in range(1, 7))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (live,) = find_inputs([str(pipe)]).sequences
    assert isinstance(live, Live)
    # Whoever writes waits until somebody reads.
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    frames = list(Selection(every=2, frames=9).of(live).frames())
    writer.join()
    assert [frame.index for frame in frames] == [0, 1, 2]
    assert all(np.array_equal(s.image, f) for s, f in zip(frames, moving(6)[::2], strict=True))


class Told:
    """In place of a decoder: what it was started with, and what it gives."""

    def __init__(self, source, info=None, frames=(), error=None, **options) -> None:
        self.source, self.options, self.given = source, options, (info, frames, error)
        self.stopped = self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def info(self):
        return self.given[0]

    def frames(self):
        yield from self.given[1]
        if self.given[2] is not None:
            raise self.given[2]

    def stop(self):
        self.stopped = True

    def close(self):
        self.closed = True


@pytest.fixture
def told(monkeypatch):
    """All decoders that were started; `told(info=…)` says what the next ones give."""
    started, gives = [], {}

    def start(source, **options):
        started.append(Told(source, **gives, **options))
        return started[-1]

    def arrange(**what):
        gives.update(what)
        return started

    monkeypatch.setattr("lcv.predict.sources.decode", start)
    monkeypatch.setattr("lcv.predict.sources.Decoder", start)
    return arrange


@pytest.mark.parametrize(
    ("rate", "known"),
    [
        ("30000/1001", Fraction(30000, 1001)),
        (None, 25),
        ("0", 25),
        ("-5", 25),
        ("1", 1),
        ("1/2", Fraction(1, 2)),
        ("1000", 1000),
        ("1001", 25),
    ],
)
def test_a_video_says_its_rate_and_length(told, rate, known):
    started = told(info={"rate": rate, "frames": 2})
    video = Video("a", Path("a.mp4"), first=4, step=2).opened()
    assert video == Video("a", Path("a.mp4"), 2, Fraction(known), 4, 2)
    assert (started[0].source, started[0].options) == (("file", "a.mp4"), {"job": "info"})
    told(info={"rate": rate, "frames": 1})
    with pytest.raises(FileError, match=r"a\.mp4: has one frame only; flow needs at least two"):
        video.opened()


def test_what_is_asked_of_the_decoder_of_a_video(told):
    """Frames 2, 5, 8, … of the file, of which the second to fourth are 5 to 11."""
    started = told()
    video = Video("a", Path("a.mp4"), 10, Fraction(25), 2, 3)
    few, many = frozenset((0, 4)), frozenset(range(100))
    for arguments, wanted in (
        ((), {"start": 2, "stop": 30, "step": 3}),
        ((1, 4), {"start": 5, "stop": 12, "step": 3}),
        ((0, None, few), {"start": 2, "stop": 30, "step": 3, "only": {2, 14}}),
        ((0, None, many), {"start": 2, "stop": 30, "step": 3}),
        ((0, None, many - {7}), {"only": {2 + 3 * n for n in many - {7}}}),
    ):
        assert not [*video.frames(*arguments)]
        assert {**started[-1].options, **wanted} == started[-1].options
        assert ("only" in started[-1].options) == ("only" in wanted)
    assert not [*Video("a", Path("a.mp4")).frames()]
    assert started[-1].options == {"start": 0, "stop": None, "step": 1}
    assert (video.files, video.file_of(3), video.is_live) == ((video.path,), video.path, False)
    assert [video.pair_name(pair) for pair in (0, 2)] == ["000002", "000008"]
    assert title(video) == "a"
    assert title(Video("", Path("a.mp4"), first=7)) == "000007"


def test_a_video_that_breaks_off_ends_with_an_error_in_its_place(told):
    image, error = np.zeros((2, 2, 3), np.uint8), FileError("damaged")
    told(frames=[(5, image), (8, image)], error=error)
    frames = [*Video("a", Path("a.mp4"), 10, Fraction(25), 2, 3).frames(1)]
    assert [(frame.index, frame.label) for frame in frames] == [
        (1, "a.mp4 frame 5"),
        (2, "a.mp4 frame 8"),
        (3, "a.mp4 frame 11"),
    ]
    assert frames[0].image is not None
    with pytest.raises(FileError, match="damaged"):
        _ = frames[2].image
    told(frames=[])
    (frame,) = Video("a", Path("a.mp4"), 10, Fraction(25), 2, 3).frames(4)
    assert (frame.index, frame.label) == (4, "a.mp4 frame 14")


def test_what_is_asked_of_the_decoder_of_a_camera(told):
    image = np.zeros((2, 2, 3), np.uint8)
    started = told(frames=[(0, image), (3, image)])
    camera = Source("camera", "0")
    frames = [*Live("room", camera, most=4, step=3).frames()]
    assert [(frame.index, frame.label) for frame in frames] == [(0, "0 frame 0"), (1, "0 frame 3")]
    assert (started[0].source, started[0].closed) == (camera, True)
    assert (started[0].options["stop"], started[0].options["step"]) == (10, 3)
    live = Live("room", camera)
    assert [*live.frames()]
    assert (started[1].options["stop"], started[1].options["step"]) == (None, 1)
    assert (live.length, live.is_live, live.rate, live.files) == (None, True, 25, ())
    assert (live.pair_name(7), live.file_of(7), title(live)) == ("000007", None, "room")


def test_a_stream_on_the_standard_input_is_left_open(monkeypatch):
    live = Live("-", Source("pipe", "-"))
    monkeypatch.setattr(sys, "__stdin__", None)
    with live._input() as stdin:
        assert (stdin.fileno(), stdin.raw.closefd) == (0, False)


def test_an_interrupt_is_the_end_of_what_runs_now():
    live = Live("room", Source("camera", "0"))
    before = signal.getsignal(signal.SIGINT)
    with live.until_interrupted():
        with pytest.raises(KeyboardInterrupt):  # there is no decoder yet that could be ended
            signal.raise_signal(signal.SIGINT)
        live._decoder = decoder = Told(live.source)
        signal.raise_signal(signal.SIGINT)
    assert decoder.stopped
    assert signal.getsignal(signal.SIGINT) is before


def test_frames_in_files():
    files = tuple(Path(f"{n}.png") for n in range(4))
    walk = FrameFiles("walk", files, ("a", "b", "c"))
    assert (walk.length, walk.rate, walk.is_live) == (4, 25, False)
    assert (walk.pair_name(2), walk.file_of(3)) == ("c", files[3])
    found = [[(frame.index, frame.label) for frame in walk.frames(*s)] for s in ((), (1, 3))]
    assert found == [[(n, f"{n}.png") for n in range(4)], [(1, "1.png"), (2, "2.png")]]

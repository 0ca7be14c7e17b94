"""The decoder's program called in this process: the records it writes, to the byte."""

from __future__ import annotations

import io
import json
import os
import runpy
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import av
import pytest

from data.formats.samples import save_clip, some_rgb
from lcv.data.formats import video, video_process
from lcv.data.formats.video_process import AHEAD, END, ERROR, FRAME, HEAD, INFO, ROOM, SLOTS
from lcv.errors import FileError

HEIGHT, WIDTH = 6, 10
FRAMES = [some_rgb(HEIGHT, WIDTH, seed) for seed in range(5)]
LIMIT = 1000
FINISHED = HEAD.pack(END, 0, 0, 0, 0)


class Output(io.BytesIO):
    """A pipe that knows how much of it the other side could read so far."""

    seen = 0

    def flush(self):
        self.seen = len(self.getvalue())


@pytest.fixture
def out(monkeypatch):
    """For what `run` writes; this process may go on writing files."""
    output, limits = Output(), []
    output.limits = limits
    resource = SimpleNamespace(
        RLIMIT_FSIZE="files", RLIMIT_CORE="core", setrlimit=lambda *given: limits.append(given)
    )
    monkeypatch.setitem(sys.modules, "resource", resource)
    return output


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "a.mkv"
    save_clip(path, FRAMES)
    return path


def order(name, **more):
    plain = {"kind": "file", "job": "frames", "start": 0, "stop": None, "step": 1, "only": None}
    return {**plain, "name": str(name), "max_pixels": LIMIT, "shared": [], **more}


def run(out, asked, program=video_process.main):
    with redirect_stdout(SimpleNamespace(buffer=out)):
        program(asked)


def as_program(asked):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["program", json.dumps(asked)])
        runpy.run_path(video_process.__file__, run_name="__main__")


def sent(number):
    return HEAD.pack(FRAME, number, 0, HEIGHT, WIDTH) + FRAMES[number].tobytes()


def said(kind, text):
    return HEAD.pack(kind, len(text.encode()), 0, 0, 0) + text.encode()


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"stop": 2}, [0, 1]),
        ({"start": 1}, [1, 2, 3, 4]),
        ({"start": 1, "step": 2}, [1, 3]),
        ({"start": 1, "step": 3}, [1, 4]),
        ({"only": [1, 3], "stop": 2}, [1, 3]),
        ({"only": [0, 1, 2], "step": 2}, [0, 2]),
        ({"only": []}, []),
    ],
)
def test_the_frames_that_were_asked_for_go_down_the_pipe(out, film, asked, numbers):
    run(out, order(film, **asked))
    assert out.getvalue() == b"".join(map(sent, numbers)) + FINISHED
    assert out.seen == len(out.getvalue())
    assert out.limits == [("files", (0, 0)), ("core", (0, 0))]


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [({"only": [1]}, [1]), ({"stop": 2}, [0, 1]), ({"only": []}, []), ({"stop": 0}, [])],
)
def test_no_frame_after_the_last_wanted_one_is_decoded(out, monkeypatch, asked, numbers):
    def frames(_):
        yield from FRAMES[: max(numbers, default=-1) + 1]
        pytest.fail("one more was decoded")

    monkeypatch.setattr(video_process, "_frames", frames)
    monkeypatch.setattr(video, "upright", lambda path, frame, converter: frame)
    run(out, order("a", **asked))
    assert out.getvalue() == b"".join(map(sent, numbers)) + FINISHED


def test_what_a_film_says_of_itself(out, film):
    run(out, order(film, job="info"))
    info = video.video_info(film)
    told = {**info.__dict__, "rate": str(info.rate), "frames": len(FRAMES)}
    assert out.getvalue() == said(INFO, json.dumps(told)) + FINISHED
    assert out.seen == len(out.getvalue())


def test_a_rate_that_is_not_known_stays_so(out, film, monkeypatch):
    monkeypatch.setattr(video, "video_info", lambda name, limit: SimpleNamespace(rate=None))
    monkeypatch.setattr(video_process, "_count", lambda order: 7)
    run(out, order(film, job="info"))
    assert out.getvalue() == said(INFO, '{"rate": null, "frames": 7}') + FINISHED


def test_packets_that_show_nothing_are_not_counted(monkeypatch):
    packets = [
        SimpleNamespace(size=size, is_discard=discard)
        for size, discard in ((9, False), (1, False), (9, True), (0, False), (0, True))
    ]

    @contextmanager
    def opened(path, limit):
        assert (path, limit) == (Path("a"), LIMIT)
        yield SimpleNamespace(demux=lambda stream: {"stream": packets}[stream]), "stream"

    monkeypatch.setattr(video, "opened", opened)
    assert video_process._count(order("a")) == 2


@pytest.mark.parametrize("job", ["frames", "info"])
def test_an_error_is_the_last_record(out, tmp_path, job):
    path = tmp_path / "größer.mkv"
    save_clip(path, FRAMES[:1])
    run(out, order(path, job=job, max_pixels=59))
    with pytest.raises(FileError) as refused:
        video.video_info(path, 59)
    assert "größer.mkv: declares 10×6 pixels" in str(refused.value)
    assert out.getvalue() == said(ERROR, str(refused.value))
    assert out.seen == len(out.getvalue())


def test_frames_in_shared_memory(tmp_path):
    """Room is asked for once; each frame goes into the slot whose number was read."""
    size = FRAMES[0].nbytes
    memory = os.open(tmp_path / "memory", os.O_CREAT | os.O_RDWR)
    os.ftruncate(memory, SLOTS * size)
    read, write = os.pipe()
    out = Output()
    os.write(write, bytes([3, 1]))
    try:
        send = video_process._sender(out, [memory, read])
        send(7, FRAMES[0])
        assert out.seen == len(out.getvalue())
        send(9, FRAMES[1])
        assert out.seen == len(out.getvalue())
        os.close(write)
        with pytest.raises(BrokenPipeError):  # nobody frees slots any more
            send(10, FRAMES[2])
    finally:
        os.close(read)
        os.close(memory)
    assert out.getvalue() == (
        HEAD.pack(ROOM, size, 0, 0, 0)
        + HEAD.pack(FRAME, 7, 3, HEIGHT, WIDTH)
        + HEAD.pack(FRAME, 9, 1, HEIGHT, WIDTH)
    )
    content = (tmp_path / "memory").read_bytes()
    empty = bytes(size)
    assert content == empty + FRAMES[1].tobytes() + empty + FRAMES[0].tobytes() + empty


def test_room_is_asked_for_before_a_slot_is_waited_for(monkeypatch):
    """Else both sides would wait."""
    out = Output()

    def read(handle, count):
        assert (handle, count) == (5, 1)
        assert out.seen == HEAD.size
        return b""

    monkeypatch.setattr(os, "read", read)
    with pytest.raises(BrokenPipeError):
        video_process._sender(out, [4, 5])(0, FRAMES[0])


def piped(monkeypatch, streams):
    """What would come from a pipe or a camera; what was opened."""
    asked = []

    def opened(*given, **more):
        asked.append((given, more))
        return nullcontext(SimpleNamespace(streams=SimpleNamespace(video=streams)))

    monkeypatch.setattr(av, "open", opened)
    return asked


def test_the_first_stream_of_a_pipe_is_decoded(monkeypatch):
    frames = [SimpleNamespace(width=2, height=3), SimpleNamespace(width=2, height=3)]
    asked = piped(monkeypatch, ["first", "second"])

    def decoded(path, container, stream):
        assert (path, container.streams.video, stream) == (Path("-"), ["first", "second"], "first")
        yield from frames

    monkeypatch.setattr(video, "decoded", decoded)
    assert list(video_process._frames(order("-", kind="pipe"))) == frames
    options = {
        "format_whitelist": f"{video.DEMUXERS},{video_process.PIPED}",
        "protocol_whitelist": "pipe",
        "probesize": "65536",
        "fpsprobesize": "0",
    }
    assert asked == [(("pipe:0",), {"metadata_errors": "replace", "options": options})]
    with pytest.raises(FileError, match=r"-: declares 2×3 pixels"):
        list(video_process._frames(order("-", kind="pipe", max_pixels=5)))


def test_a_stream_with_nothing_to_see_is_refused(monkeypatch):
    piped(monkeypatch, [])
    with pytest.raises(FileError, match="^-: has no video stream$"):
        list(video_process._frames(order("-", kind="pipe")))
    piped(monkeypatch, ["first"])
    monkeypatch.setattr(video, "decoded", lambda *_: iter(()))
    with pytest.raises(FileError, match="^-: has a video stream but not one frame; it is damaged$"):
        list(video_process._frames(order("-", kind="pipe")))


def test_a_camera_is_opened_by_its_number(monkeypatch):
    asked = piped(monkeypatch, [])
    video_process._opened("camera", "camera:3")
    assert asked == [(("/dev/video3",), {"format": "v4l2"})]


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("camera", OSError(2, "Nothing there"), "x: the camera cannot be opened: Nothing there"),
        ("camera", ValueError("odd"), "x: the camera cannot be opened: odd"),
        ("pipe", OSError(5, "Bad"), "x: not a stream that can be read: Bad; wanted YUV4MPEG"),
        ("pipe", ValueError("odd"), "x: not a stream that can be read: odd; wanted YUV4MPEG"),
    ],
)
def test_what_cannot_be_opened_is_a_sentence(monkeypatch, kind, error, message):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(av, "open", refuse)
    with pytest.raises(FileError) as refused:
        video_process._opened(kind, "x")
    assert str(refused.value).startswith(message)


def test_the_frames_of_a_file_are_decoded_in_parallel(monkeypatch):
    stream, frame = SimpleNamespace(), SimpleNamespace(width=2, height=3)

    @contextmanager
    def opened(path, limit):
        assert (path, limit) == (Path("a"), LIMIT)
        yield "container", stream

    def decoded(*given):
        assert given == (Path("a"), "container", stream)
        assert stream.thread_type == "AUTO"
        yield frame

    monkeypatch.setattr(video, "opened", opened)
    monkeypatch.setattr(video, "decoded", decoded)
    assert list(video_process._frames(order("a"))) == [frame]


def test_the_program_takes_its_order_from_the_command_line(out, film):
    run(out, order(film, stop=1), as_program)
    assert out.getvalue() == sent(0) + FINISHED


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_a_program_that_nobody_listens_to_ends_in_silence(out, film, monkeypatch, error):
    tried = []

    def refuse(_):
        tried.append(error)
        raise error

    monkeypatch.setattr(out, "write", refuse)
    run(out, order(film), as_program)
    assert 1 <= len(tried) <= AHEAD  # and not once for each of its frames

"""Films: every frame once and upright, whatever their times and sizes; the rest in sentences."""

from __future__ import annotations

import struct
import types
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from data.formats.samples import save_changing_clip, save_clip, some_rgb
from lcv.data.formats import video as module
from lcv.data.formats.video import decoded, read_video, timed_frames, video_info
from lcv.errors import FileError
from testing.shared import shared


def frames_of(count, height=21, width=33):
    return [some_rgb(height, width, seed) for seed in range(count)]


@pytest.mark.parametrize("size", [(21, 33), (1, 1), (17, 16), (16, 17), (64, 48)])
def test_odd_sizes_come_back_exactly(tmp_path, size):
    frames = frames_of(4, *size)
    save_clip(tmp_path / "a.mkv", frames)
    read = list(read_video(tmp_path / "a.mkv"))
    assert len(read) == 4
    for found, wanted in zip(read, frames, strict=True):
        assert found.dtype == np.uint8
        assert np.array_equal(found, wanted)
    info = video_info(str(tmp_path / "a.mkv"))
    assert (info.height, info.width) == size
    assert (info.codec, info.rotation, info.rate) == ("ffv1", 0, Fraction(10))


def test_odd_sizes_with_halved_colours_keep_size_and_colour(tmp_path):
    flat = np.empty((21, 33, 3), dtype=np.uint8)
    flat[:] = 200, 40, 90
    save_clip(tmp_path / "a.mp4", [flat] * 3, codec="mpeg4", pixels="yuv420p")
    for frame in read_video(tmp_path / "a.mp4"):
        assert frame.shape == flat.shape
        # 4:2:0 in eight bits cannot hold RGB exactly: ±1 in luma, ±1 in chroma times up to 2.02.
        assert np.abs(frame.astype(int) - flat).max() <= 4


def test_a_variable_rate_neither_doubles_nor_drops(tmp_path):
    times = [0, 40, 300, 310, 1000, 1100, 1101, 4000]
    frames = frames_of(8)
    save_clip(tmp_path / "a.mkv", frames, milliseconds=times)
    read = list(timed_frames(tmp_path / "a.mkv"))
    assert [round(1000 * seconds) for seconds, _ in read] == times
    assert all(np.array_equal(f, w) for (_, f), w in zip(read, frames, strict=True))


# What QuickTime's track header holds: a, b, u, c, d, v, x, y, w with x' = a x + c y, y' = b x + d y.
ONE, HALF_TURN, UNIT = 1 << 16, -1 << 16, 1 << 30
MATRICES = {
    90: (0, ONE, 0, HALF_TURN, 0, 0, 0, 0, UNIT),  # right goes down: a quarter clockwise
    180: (HALF_TURN, 0, 0, 0, HALF_TURN, 0, 0, 0, UNIT),
    270: (0, HALF_TURN, 0, ONE, 0, 0, 0, 0, UNIT),
}
UPRIGHT = struct.pack(">9i", ONE, 0, 0, 0, ONE, 0, 0, 0, UNIT)


def with_matrix(path, matrix):
    content = path.read_bytes()
    at = content.index(UPRIGHT, content.index(b"tkhd"))
    path.write_bytes(content[:at] + struct.pack(">9i", *matrix) + content[at + 36 :])


@pytest.mark.parametrize("clockwise", [90, 180, 270])
def test_a_rotation_is_carried_out(tmp_path, clockwise):
    path = tmp_path / "a.mp4"
    corner = np.zeros((32, 48, 3), dtype=np.uint8)
    corner[:16, :16] = 255
    save_clip(path, [corner] * 3, codec="mpeg4", pixels="yuv420p")
    plain = list(read_video(path))
    with_matrix(path, MATRICES[clockwise])
    turned = list(read_video(path))
    for before, after in zip(plain, turned, strict=True):
        assert np.array_equal(after, np.rot90(before, -clockwise // 90))
    info = video_info(path)
    assert (info.height, info.width) == turned[0].shape[:2]
    assert info.rotation == 360 - clockwise


def test_a_crooked_rotation_is_refused(tmp_path):
    path = tmp_path / "a.mp4"
    save_clip(path, frames_of(2), codec="mpeg4", pixels="yuv420p")
    with_matrix(path, (ONE, ONE // 2, 0, -ONE // 2, ONE, 0, 0, 0, UNIT))
    with pytest.raises(FileError, match=r"a\.mp4: asks to be turned by -?\d+ degrees, wanted a"):
        list(read_video(path))


def test_frames_are_decoded_as_they_are_asked_for(tmp_path):
    save_clip(tmp_path / "a.mkv", frames_of(30))
    frames = read_video(tmp_path / "a.mkv")
    assert isinstance(frames, types.GeneratorType)
    assert np.array_equal(next(frames), frames_of(1)[0])
    frames.close()


def test_a_name_that_looks_like_a_pattern_or_an_address_is_a_name(tmp_path):
    for name in ("50%03d.mkv", "http:a.mkv", "-i.mkv"):
        save_clip(tmp_path / "a.mkv", frames_of(2))
        (tmp_path / "a.mkv").rename(tmp_path / name)
        assert len(list(read_video(tmp_path / name))) == 2


def test_no_video_stream_a_cover_picture_and_text_are_refused(tmp_path):
    path = tmp_path / "sound.m4a"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        sound.sample_rate = 16000
        container.mux([*stream.encode(sound), *stream.encode(None)])
    with pytest.raises(FileError, match=r"sound\.m4a: has no video stream, only audio"):
        next(read_video(path))
    for name, content in {"text.mp4": b"hello, world\n" * 99, "empty.mp4": b""}.items():
        (tmp_path / name).write_bytes(content)
        message = rf"{name}: not a video that can be read \({len(content)} bytes\): .* wanted MP4"
        with pytest.raises(FileError, match=message):
            next(read_video(tmp_path / name))
        with pytest.raises(FileError, match=message):
            video_info(tmp_path / name)
    with pytest.raises(FileError, match="there is no such file"):
        next(read_video(tmp_path / "none.mp4"))
    with pytest.raises(FileError, match="this is a folder, wanted a video file"):
        video_info(tmp_path)


def test_a_playlist_or_script_opens_nothing_else(tmp_path):
    save_clip(tmp_path / "secret.mkv", frames_of(2))
    scripts = {
        "list.m3u8": f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{tmp_path}/secret.mkv\n",
        "list.txt": "ffconcat version 1.0\nfile secret.mkv\n",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(FileError, match="not a video that can be read"):
            next(read_video(tmp_path / name))


@pytest.mark.parametrize("kind", ["end.mp4", "front.mp4", "a.mkv", "a.avi"])
def test_every_cut_is_refused(tmp_path, kind):
    path = tmp_path / kind
    muxer = {"movflags": "faststart"} if kind == "front.mp4" else {}
    save_clip(path, frames_of(12), codec="mpeg4", pixels="yuv420p", **muxer)
    whole = path.read_bytes()
    assert len(list(read_video(path))) == 12
    for length in np.linspace(1, len(whole) - 1, 20).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError) as caught:
            list(read_video(path))
        assert str(caught.value).startswith(str(path))
    with pytest.raises(FileError, match=r"cut video: its parts reach to byte \d+, but it has"):
        video_info(path)


def test_a_change_of_size_is_refused_and_named(tmp_path):
    save_changing_clip(tmp_path / "a.ts")
    with pytest.raises(FileError, match=r"a\.ts: frame 3 is 64×48, those before are 48×32"):
        list(read_video(tmp_path / "a.ts"))


def test_the_limit_of_pixels_is_an_argument(tmp_path):
    save_clip(tmp_path / "a.mkv", frames_of(2))
    assert len(list(read_video(tmp_path / "a.mkv", max_pixels=21 * 33))) == 2
    for call in (video_info, lambda *args: next(read_video(*args))):
        with pytest.raises(FileError, match="declares 33×21 pixels, more than the 692"):
            call(tmp_path / "a.mkv", 692)


@pytest.mark.parametrize(
    ("name", "size", "count", "rate"),
    [("cockatoo.mp4", (720, 1280, 3), 280, 20), ("mmflow-demo.mp4", (436, 1024, 3), 50, 10)],
)
def test_real_films(name, size, count, rate):
    path = shared("data", "video", name)
    info = video_info(path)
    assert (info.height, info.width, 3) == size
    assert (info.frames, info.rate, info.seconds) == (count, rate, count / rate)
    found = 0
    for frame in read_video(path):
        assert frame.shape == size
        found += 1
    assert found == count


class Packet:
    """Some frames, whole or not."""

    def __init__(self, *frames, corrupt=False):
        self.frames, self.is_corrupt = frames, corrupt

    def decode(self):
        for frame in self.frames:
            if isinstance(frame, Exception):
                raise frame
            yield frame


def frame(corrupt=False):
    return SimpleNamespace(is_corrupt=corrupt, width=4, height=4)


@pytest.mark.parametrize(
    ("packets", "given", "words"),
    [
        ([Packet(frame(), frame()), Packet(frame())], 3, None),
        ([Packet(frame()), Packet(frame(corrupt=True))], 1, "damaged video at frame 1; fetch it"),
        ([Packet(frame()), Packet(frame(), corrupt=True)], 1, "damaged video at frame 1; fetch it"),
        ([Packet(frame()), Packet(corrupt=True)], 1, "damaged video after frame 1; fetch it again"),
        ([Packet(frame(), ValueError("odd"))], 1, "damaged video at frame 1: odd"),
    ],
)
def test_damage_is_said_with_its_frame(packets, given, words):
    film = decoded(Path("a.mp4"), SimpleNamespace(demux=lambda stream: iter(packets)), None)
    assert [next(film).width for _ in range(given)] == [4] * given
    if words is None:
        assert list(film) == []
    else:
        with pytest.raises(FileError, match=f"a.mp4: {words}"):
            next(film)


def test_a_film_without_a_frame(tmp_path, monkeypatch):
    @contextmanager
    def empty(path, limit):
        yield SimpleNamespace(demux=lambda stream: iter([])), None

    monkeypatch.setattr(module, "opened", empty)
    for read in (lambda path: list(module.timed_frames(path)), module.video_info):
        with pytest.raises(FileError, match="has a video stream but not one frame; the file is"):
            read(tmp_path / "a.mp4")


def test_a_frame_that_is_no_picture():
    class Fails:
        def reformat(self, frame, **options):
            raise ValueError("odd")

    with pytest.raises(FileError, match="a.mp4: a frame cannot be turned into RGB: odd"):
        module.upright(Path("a.mp4"), SimpleNamespace(rotation=0), Fails())


def test_the_first_frame_of_a_film_is_held_against_the_limit(tmp_path, monkeypatch):
    """A film may say nothing of its size before it is decoded."""
    first = SimpleNamespace(is_corrupt=False, width=4, height=4, rotation=90)
    stream = SimpleNamespace(
        duration=None,
        time_base=None,
        frames=0,
        average_rate=Fraction(5),
        codec_context=SimpleNamespace(name="x"),
    )

    @contextmanager
    def silent(path, limit):
        yield SimpleNamespace(demux=lambda stream: iter([Packet(first)]), duration=3000000), stream

    monkeypatch.setattr(module, "opened", silent)
    with pytest.raises(FileError, match="declares 4×4 pixels, more than the 15 that are allowed"):
        video_info(tmp_path / "a.mp4", 15)
    first.width = 2
    info = video_info(tmp_path / "a.mp4", 15)
    assert (info.width, info.height, info.rotation) == (4, 2, 90)
    assert (info.frames, info.rate, info.seconds, info.codec) == (None, 5, 3.0, "x")

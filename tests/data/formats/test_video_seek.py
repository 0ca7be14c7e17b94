"""Frames reached by a jump are those that reading from the beginning gives."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from data.formats.samples import save_changing_clip, save_clip, some_rgb
from lcv.data.formats import video_seek
from lcv.data.formats.video import read_video
from lcv.data.formats.video_seek import Times, frames_at
from lcv.errors import FileError
from testing.shared import shared


@pytest.fixture
def counted(monkeypatch):
    """How many frames the certain way has decoded after the times are known."""
    seen = []
    real = video_seek.decoded

    def decoded(path, container, stream):
        for frame in real(path, container, stream):
            seen.append(frame.pts)
            yield frame

    monkeypatch.setattr(video_seek, "decoded", decoded)
    return seen


def same(found, wanted):
    return len(found) == len(wanted) and all(map(np.array_equal, found, wanted))


@pytest.mark.parametrize("codec", ["ffv1", "mpeg4"])
def test_every_pair_of_a_film_is_that_of_reading_it_whole(tmp_path, codec, counted):
    pixels = {"ffv1": "bgr0", "mpeg4": "yuv420p"}[codec]
    drawn = [some_rgb(32, 48, seed) for seed in range(30)]  # mpeg4 has a key frame every twelve
    save_clip(tmp_path / "a.mkv", drawn, codec=codec, pixels=pixels)
    whole = list(read_video(tmp_path / "a.mkv"))
    for first in range(29):
        assert same(frames_at(tmp_path / "a.mkv", first, 2), whole[first : first + 2])
    assert len(counted) == 30  # once, for the times


def test_a_film_without_times_of_its_own_is_read_from_the_beginning(tmp_path, monkeypatch, counted):
    save_clip(tmp_path / "a.mkv", [some_rgb(16, 16, seed) for seed in range(6)])
    whole = list(read_video(tmp_path / "a.mkv"))
    monkeypatch.setattr(video_seek, "_times", lambda *_: None)
    assert same(frames_at(tmp_path / "a.mkv", 3, 2), whole[3:5])
    assert len(counted) == 5


def test_times_that_are_not_kept_after_the_jump_are_not_believed(tmp_path, monkeypatch):
    save_clip(tmp_path / "a.mkv", [some_rgb(16, 16, seed) for seed in range(6)])
    whole = list(read_video(tmp_path / "a.mkv"))
    monkeypatch.setattr(video_seek, "_times", lambda *_: Times((0, 1, 2, 3, 4, 5), (0,), (16, 16)))
    assert same(frames_at(tmp_path / "a.mkv", 2), whole[2:3])


def test_a_file_that_was_replaced_is_looked_at_again(tmp_path):
    path = tmp_path / "a.mkv"
    for seeds in (range(4), range(10, 20)):
        drawn = [some_rgb(16, 16, seed) for seed in seeds]
        save_clip(path, drawn)
        assert same(frames_at(path, 2, 2), drawn[2:4])


@pytest.mark.parametrize("first", [0, 2, 3, 4])
@pytest.mark.parametrize("by_times", [True, False])
def test_a_film_that_changes_its_size_is_refused_as_when_read(
    tmp_path, monkeypatch, first, by_times
):
    path = tmp_path / "a.ts"
    save_changing_clip(path)
    with pytest.raises(FileError) as read:
        list(read_video(path))
    if not by_times:
        monkeypatch.setattr(video_seek, "_times", lambda *_: None)
    if not by_times and first + 2 <= 3:  # nor does reading get to the change
        assert same(frames_at(path, first, 2), list(islice(read_video(path), first, first + 2)))
        return
    with pytest.raises(FileError) as jumped:
        frames_at(path, first, 2)
    assert str(jumped.value) == str(read.value)
    assert "frame 3 is 64×48, those before are 48×32" in str(read.value)


def test_sizes_that_are_not_kept_after_the_jump_are_not_believed(tmp_path, monkeypatch, counted):
    save_clip(tmp_path / "a.mkv", [some_rgb(16, 16, seed) for seed in range(6)])
    found = video_seek._times.__wrapped__(tmp_path / "a.mkv", 0, 0, 10**6)
    monkeypatch.setattr(video_seek, "_times", lambda *_: found._replace(size=(8, 8)))
    counted.clear()
    assert same(frames_at(tmp_path / "a.mkv", 3), list(read_video(tmp_path / "a.mkv"))[3:4])
    assert len(counted) == 4  # from the beginning


@pytest.mark.parametrize("by_times", [True, False])
def test_every_frame_is_held_against_the_limit(tmp_path, monkeypatch, by_times):
    save_clip(tmp_path / "a.mkv", [some_rgb(16, 16, seed) for seed in range(3)])
    real = video_seek.opened
    # As if the film declared nothing, so that the frames alone can tell.
    monkeypatch.setattr(video_seek, "opened", lambda path, _: real(path, 10**6))
    if not by_times:
        monkeypatch.setattr(video_seek, "_times", lambda *_: None)
    with pytest.raises(FileError, match=r"a\.mkv: .*16.*255"):
        frames_at(tmp_path / "a.mkv", 1, max_pixels=255)


def test_beyond_the_end(tmp_path):
    save_clip(tmp_path / "a.mkv", [some_rgb(16, 16, seed) for seed in range(3)])
    with pytest.raises(FileError, match=r"a\.mkv: has no frame 3; it ends earlier"):
        frames_at(tmp_path / "a.mkv", 2, 2)


def test_real_films():
    path = shared("data", "video", "mmflow-demo.mp4")
    for first in (0, 17, 48):
        wanted = list(islice(read_video(path), first, first + 2))
        assert same(frames_at(path, first, 2), wanted)

"""Animated PNG and WebP are videos: every frame comes back."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import png_chunk, some_rgb
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats import animation
from lcv.data.formats.animation import MOST_CHUNKS, is_animated
from lcv.data.formats.png import SIGNATURE
from lcv.data.formats.video import read_video, timed_frames, video_info
from lcv.errors import FileError
from lcv.predict.sources import Video

FRAMES = [some_rgb(20, 30, seed) for seed in range(4)]


def save(path, frames=FRAMES):
    first, *rest = map(Image.fromarray, frames)
    more = {"save_all": True, "append_images": rest, "duration": 100} if rest else {}
    first.save(path, lossless=True, **more)
    return path


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.apng"])
def test_frames_come_back_exactly(tmp_path, name):
    path = save(tmp_path / name)
    assert is_animated(path)
    assert video_info(path).rate == 10
    read = list(read_video(path))
    assert all(np.array_equal(a, b) for a, b in zip(read, FRAMES, strict=True))
    (video,) = find_inputs([str(path)]).sequences
    assert isinstance(video, Video)
    assert video.opened().length == 4


@pytest.mark.parametrize("name", ["a.png", "a.webp"])
def test_a_picture_is_none(tmp_path, name):
    assert not is_animated(save(tmp_path / name, FRAMES[:1]))


def test_a_cut_webp_is_refused(tmp_path):
    path = save(tmp_path / "a.webp")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(FileError, match=r"a\.webp: "):
        list(read_video(path))


def test_no_more_than_a_thousand_chunks_are_looked_at(tmp_path):
    path, before = tmp_path / "a.png", png_chunk(b"tEXt", b"")
    for count, wanted in ((MOST_CHUNKS - 1, True), (MOST_CHUNKS, False)):
        path.write_bytes(SIGNATURE + count * before + png_chunk(b"acTL", bytes(8)))
        assert is_animated(path) is wanted
    assert MOST_CHUNKS == 1000


def test_a_webp_keeps_its_times_and_drops_transparency(tmp_path):
    clear = [np.dstack([frame, np.full(frame.shape[:2], 9, np.uint8)]) for frame in FRAMES[:3]]
    first, *rest = map(Image.fromarray, clear)
    more = {"save_all": True, "append_images": rest, "duration": [100, 300, 50]}
    first.save(tmp_path / "a.webp", lossless=True, exact=True, **more)
    times, read = zip(*timed_frames(tmp_path / "a.webp"), strict=True)
    assert times == pytest.approx((0, 0.1, 0.4))
    with Image.open(tmp_path / "a.webp") as picture:
        for index, frame in enumerate(read):
            picture.seek(index)
            assert np.array_equal(frame, np.array(picture.convert("RGB")))
    assert len(read) == 3


def test_a_webp_of_too_many_pixels_in_all_is_refused(tmp_path):
    frames = [np.full((300, 300, 3), grey, np.uint8) for grey in range(0, 250, 25)]
    path = save(tmp_path / "a.webp", frames)
    assert len(list(read_video(path, max_pixels=10 * 300 * 300))) == 10
    with pytest.raises(FileError, match="claim 10 frames of 300×300 pixels, wanted at most 899999"):
        list(read_video(path, max_pixels=10 * 300 * 300 - 1))


def test_a_webp_that_becomes_a_vast_png_is_refused(tmp_path, monkeypatch):
    path = save(tmp_path / "a.webp")
    assert len(list(read_video(path))) == 4
    monkeypatch.setattr(animation, "FREELY", 100)
    monkeypatch.setattr(animation, "MOST_PACKED", 0)
    with pytest.raises(FileError, match=r"a\.webp: its \d+ bytes unpack to a PNG of more than"):
        list(read_video(path, max_pixels=4 * 20 * 30))

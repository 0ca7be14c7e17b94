"""Animated PNG and WebP are videos: every frame comes back."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import png_chunk, some_rgb
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.animation import MOST_CHUNKS, is_animated
from lcv.data.formats.png import SIGNATURE
from lcv.data.formats.video import read_video, video_info
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

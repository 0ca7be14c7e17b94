"""Sequences: frames in order, from any frame on, with errors in their places."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from lcv.cli.predict_inputs import find_inputs
from lcv.errors import FileError
from lcv.predict.selection import Selection
from lcv.predict.sources import Live, Video
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

"""The frames that are taken are those of the whole sequence, under the names that they have there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcv.cli.predict_inputs import find_inputs
from lcv.errors import ArgumentError, FileError
from lcv.predict.selection import Selection
from lcv.predict.sources import Video
from predict.small_jobs import made, run
from testing.footage import save_film, save_frames

COUNT = 12
number = st.integers(0, COUNT)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Twelve frames, ten a second."""
    return Video("a", save_film(tmp_path_factory.mktemp("film") / "a.mkv", COUNT)).opened()


def test_the_frames_of_a_video(film):
    """From 0.15 s on and before 1 s, every third: frames 2, 5 and 8."""
    whole = list(film.frames())
    some = Selection(Fraction("0.15"), Fraction(1), every=3).of(film)
    assert (some.length, some.rate) == (3, Fraction(10, 3))
    assert [some.pair_name(pair) for pair in (0, 1)] == ["000002", "000005"]
    taken = [*some.frames(), *some.frames(1, 2), *some.frames(only=frozenset((0, 2)))]
    assert [frame.index for frame in taken] == [0, 1, 2, 1, 0, 2]
    for frame in taken:
        assert np.array_equal(frame.image, whole[2 + 3 * frame.index].image)
        assert frame.label.endswith(f" frame {2 + 3 * frame.index}")


@given(start=number, end=number, every=st.integers(1, COUNT), frames=st.integers(2, COUNT))
def test_what_is_taken_is_a_slice(start, end, every, frames):
    film = Video("a", "a.mp4", COUNT, Fraction(10))
    wanted = list(range(COUNT)[start:end:every])[:frames]
    selection = Selection(Fraction(start, 10), Fraction(end, 10), every, frames)
    if len(wanted) < 2:
        with pytest.raises(ArgumentError):
            selection.of(film)
        return
    some = selection.of(film)
    assert [int(some.pair_name(k)) for k in range(some.length)] == wanted


def test_the_frames_of_a_folder(tmp_path):
    (walk,) = find_inputs([str(save_frames(tmp_path / "walk", 5))]).sequences
    assert Selection().of(walk) is walk
    assert Selection(frames=3).of(walk).names == ("frame_1", "frame_2")
    third = Selection(every=3).of(walk)
    assert [file.name for file in third.files] == ["frame_1.png", "frame_4.png"]
    assert third.names == ("frame_1",)
    with pytest.raises(ArgumentError, match="--every 5 leaves 1 of its 5 frames"):
        Selection(every=5).of(walk)
    with pytest.raises(ArgumentError, match="walk: --start and --end are seconds of a video file"):
        Selection(Fraction(1)).of(walk)


def test_a_time_after_the_end(film):
    with pytest.raises(ArgumentError, match=r"fewer than two frames.* it lasts 1.2 s at 10 frames"):
        Selection(Fraction(3)).of(film)


def test_a_job_over_every_second_frame(predictor, walk, tmp_path):
    """Its flow is that of a folder with only those frames; the job does not go on with all."""
    run(predictor, walk, tmp_path / "out", every=2)
    for frame in walk.iterdir():
        if int(frame.stem[-1]) % 2 == 0:
            frame.unlink()
    run(predictor, walk, tmp_path / "few")
    flows = ({k: v for k, v in made(tmp_path / f).items() if "flo" in k} for f in ("out", "few"))
    assert next(flows) == next(flows)
    with pytest.raises(FileError, match="there every is 2, here 1"):
        run(predictor, walk, tmp_path / "out")

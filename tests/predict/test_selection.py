"""The frames that are taken are those of the whole sequence, under the names that they have there."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.decoder import Source
from lcv.errors import ArgumentError, FileError
from lcv.predict.selection import Selection, limited
from lcv.predict.sources import FrameFiles, Live, Video
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
    with pytest.raises(ArgumentError, match="walk: --start and --end work for video files only"):
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
    with pytest.raises(FileError, match="every was 2, and is 1 now"):
        run(predictor, walk, tmp_path / "out")


def test_the_first_frames_of_every_kind():
    film = Video("a", Path("a.mp4"), COUNT, Fraction(10))
    assert [limited(film, most).length for most in (None, 5, COUNT, 99)] == [12, 5, 12, 12]
    assert limited(Video("a", Path("a.mp4")), 5).length == 5
    files = FrameFiles("a", tuple(Path(f"{n}.png") for n in range(4)), ("0", "1", "2"))
    assert limited(files, None) is files
    assert limited(files, 3) == FrameFiles("a", files.files[:3], ("0", "1"))
    live = Live("a", Source("camera", "0"), step=4)
    few = Selection(frames=3).of(live)
    assert (few.name, few.source, few.most, few.step) == ("a", live.source, 3, 4)
    third = Selection(every=3).of(few)
    assert (third.name, third.source, third.most, third.step) == ("a", live.source, 3, 3)


def test_two_frames_are_enough_and_one_is_not():
    film = Video("a", Path("a.mp4"), COUNT, Fraction(10))
    assert Selection(Fraction(1)).of(film) == replace(film, first=10, length=2)
    assert Selection(end=Fraction("0.11")).of(film) == replace(film, length=2)
    assert Selection(every=11).of(film).length == 2
    with pytest.raises(ArgumentError, match="a: --every 12 leaves 1 of its 12 frames"):
        Selection(every=12).of(film)
    message = (
        r"a\.mp4: fewer than two frames lie between --start and --end; it lasts 1\.2 s at 10 frames"
    )
    for chosen in (Selection(Fraction("1.01")), Selection(end=Fraction("0.1"))):
        with pytest.raises(ArgumentError, match=message):
            chosen.of(film)
    files = FrameFiles("walk", (Path("1.png"), Path("2.png")), ("1",))
    with pytest.raises(ArgumentError, match="walk: --start and --end work for video files only"):
        Selection(end=Fraction(1)).of(files)

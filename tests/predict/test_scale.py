"""The scale of pictures."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from lcv.errors import FileError
from lcv.predict.folder import JobFolder
from lcv.predict.job import Job, Listener
from lcv.predict.scale import Scales, own_scale, sample_pairs, sequence_scale
from lcv.predict.sources import RawFrame


class Film:
    """Frames that are filled with their number; `bad` ones cannot be read."""

    name = "film"

    def __init__(self, length: int, bad: tuple[int, ...] = ()) -> None:
        self.length, self.bad, self.asked = length, bad, []

    def frames(self, start=0, stop=None, only=None):
        self.asked.append(only)
        for index in range(self.length):
            if only is None or index in only:
                yield RawFrame(index, f"frame {index}", partial(self._read, index))

    def _read(self, index):
        if index in self.bad:
            raise FileError(f"frame {index}")
        return np.full((2, 2, 3), index, np.uint8)


class Motion:
    """A predictor: pair i moves by speed[i] pixels, to the right."""

    def __init__(self, speed: dict[int, float]) -> None:
        self.speed, self.pairs = speed, []

    def __call__(self, one, two):
        pair = int(one[0, 0, 0])
        assert int(two[0, 0, 0]) == pair + 1
        self.pairs.append(pair)
        return SimpleNamespace(flow=moved(self.speed.get(pair, 1.0)))

    def flow(self, one, two):
        return self(one, two).flow


def moved(speed: float) -> np.ndarray:
    return np.full((4, 4, 2), (speed, 0), np.float32)


@pytest.mark.parametrize("pairs", [2, 7, 8, 15, 16, 40, 41, 279, 100_000])
def test_a_scale_is_taken_from_pairs_all_over_and_from_all_of_a_short_sequence(pairs):
    chosen = sample_pairs(pairs)
    wanted = pairs if pairs < 8 else min(5, max(3, pairs // 8))
    assert len(chosen) == len(set(chosen)) == wanted
    assert all(0 <= pair < pairs for pair in chosen)
    gaps = np.diff([-chosen[0] - 1, *chosen, 2 * pairs - chosen[-1]])
    assert gaps.max() - gaps.min() <= 2


def test_the_scale_is_that_of_the_sampled_pair_that_moves_most():
    """Of 16 pairs three are looked at; the second frame of one is no pair with the next one."""
    film, motion = Film(17), Motion({2: 3.0, 8: 40.0, 13: 7.0, 9: 500.0})
    assert sequence_scale(motion.flow, film, 16) == own_scale(moved(40.0))
    assert film.asked == [{2, 3, 8, 9, 13, 14}]
    assert motion.pairs == [2, 8, 13]
    short = Motion({0: 9.0, 1: 2.0})
    assert sequence_scale(short.flow, Film(4), 3) == own_scale(moved(9.0))
    assert short.pairs == [0, 1, 2]


def test_a_sampled_pair_between_two_others_is_no_sample():
    """All frames are there, and only the chosen pairs are computed."""

    class Whole(Film):
        def frames(self, start=0, stop=None, only=None):
            return super().frames()

    motion = Motion({})
    sequence_scale(motion.flow, Whole(17), 16)
    assert motion.pairs == [2, 8, 13]


def test_pairs_that_cannot_be_computed_do_not_count():
    film, motion = Film(17, bad=(3, 9)), Motion({13: 5.0})
    assert sequence_scale(motion.flow, film, 16) == own_scale(moved(5.0))
    assert motion.pairs == [13]
    assert sequence_scale(motion.flow, Film(3, bad=(1,)), 2) is None


def test_the_first_pair_that_can_be_computed_stands_in_for_bad_ones():
    film, motion = Film(17, bad=(0, 3, 9, 14)), Motion({1: 5.0, 4: 9.0})
    assert sequence_scale(motion.flow, film, 16) == own_scale(moved(5.0))
    assert motion.pairs == [1]


class Heard(Listener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text):
        self.said.append(text)


def test_a_scale_is_decided_once_for_all_workers(tmp_path):
    heard, motion, film = Heard(), Motion({1: 6.0}), Film(3)
    folder, job = JobFolder(tmp_path / "out", {"lcv": "0"}), Job((), None, ())
    scales = Scales(motion, job, folder, heard)
    wanted = own_scale(moved(6.0))
    assert scales.of(film) == scales.of(film) == folder.kept("scale", "film") == wanted
    assert heard.said == ["film: looking at 2 of 2 pairs for a common scale"]
    assert motion.pairs == [0, 1]
    other = Motion({1: 100.0})
    assert Scales(other, job, folder, heard).of(film) == wanted
    assert not other.pairs
    assert Scales(other, job, None, heard).of(film) == own_scale(moved(100.0))
    for kept in ('"large"', "0.0", "-1.0", "NaN", "Infinity", "1e999", "0.99", "1e10", "3"):
        (tmp_path / "out" / "scale" / "film.json").write_text(kept)
        with pytest.raises(FileError, match=r"scale/film\.json: holds no scale\. Choose"):
            Scales(motion, job, folder, heard).of(film)


def test_a_scale_that_is_given_or_of_one_pair_is_not_looked_for():
    motion = Motion({})
    assert Scales(motion, Job((), None, (), scale=8.0), None, Heard()).of(Film(9)) == 8.0
    assert Scales(motion, Job((), None, ()), None, Heard()).of(Film(2)) is None
    nobody_knows = SimpleNamespace(name="camera", length=None)
    assert Scales(motion, Job((), None, ()), None, Heard()).of(nobody_knows) is None
    assert not motion.pairs


def test_where_no_pair_can_be_computed_there_is_no_scale(tmp_path):
    folder = JobFolder(tmp_path / "out", {"lcv": "0"})
    scales = Scales(Motion({}), Job((), None, ()), folder, Heard())
    assert scales.of(Film(3, bad=(1,))) is None
    assert not (tmp_path / "out").exists()

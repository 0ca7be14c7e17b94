"""The test of truths: repaired corruptions win, unchanged flows are skipped, draws are fair."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.data import truth_test as tt
from lcv.data.truth_test import CORRUPTIONS, Duel, Neighbour, duels, patches, pool
from testing import datasets as fake

EVERYWHERE = np.ones(fake.SIZE, bool)


def film_duels(flow, t=1, reverse=False):
    film = fake.Film(3)
    frames = [film.frame(t), film.frame(t + 1)]
    return duels("pair", *(frames[::-1] if reverse else frames), flow, EVERYWHERE)


def test_a_patch_by_hand():
    picture = np.arange(8.0)[:, None] * 10 + np.arange(9.0)
    patch = patches(picture, np.array([3.25]), np.array([4.0])).reshape(7, 7)
    assert np.allclose(patch, 10 * np.arange(1, 8)[:, None] + np.arange(7) + 0.25)
    outside = patches(picture, np.array([2.9, 5.0, 5.1, 4.0]), np.array([4.0, 4.0, 4.0, 4.5]))
    assert np.isnan(outside).all(1).tolist() == [True, False, True, True]


def test_the_distance_is_blind_to_brightness_and_counts_differences():
    patch = np.random.default_rng(0).integers(0, 200, (5, 49)).astype(float)
    assert tt.census_distance(patch, patch + 30) == pytest.approx(np.zeros(5))
    inverted = tt.census_distance(patch, -patch)
    assert (inverted > 40).all()
    assert (inverted < 48).all()


def test_the_true_flow_wins_against_every_rival():
    results = film_duels(fake.Film(3).flow(1, 2))
    assert set(results) == {*CORRUPTIONS, tt.REVERSED}
    for duel in results.values():
        assert duel.decided
        assert not duel.lost


@pytest.mark.parametrize("name", [name for name in CORRUPTIONS if name != tt.ZERO])
def test_a_corrupted_flow_loses_to_the_same_corruption_most(name):
    results = film_duels(np.ascontiguousarray(CORRUPTIONS[name](fake.Film(3).flow(1, 2))))
    worst = min(results, key=lambda rival: results[rival].share)
    assert results[worst].lost
    # Frames in reverse order and both signs lost are the same to a smooth motion.
    twins = {name, tt.REVERSED} if name == "u and v negated" else {name}
    assert worst in twins


def test_reversed_frames_lose():
    results = film_duels(fake.Film(3).flow(1, 2), reverse=True)
    assert results[tt.REVERSED].lost
    assert min(results, key=lambda rival: results[rival].share) in {tt.REVERSED, "u and v negated"}


def test_a_corruption_that_changes_nothing_is_not_decided():
    flow = fake.Film(3).flow(1, 2) * np.array([1, 0], np.float32)
    results = film_duels(flow)
    assert results["v negated"] == Duel(0, 0.0)
    assert not results["v negated"].decided
    assert not results["v negated"].lost
    assert results["u negated"].decided
    still = film_duels(np.zeros((*fake.SIZE, 2), np.float32))
    assert not any(duel.decided for duel in still.values())


def test_the_truth_of_the_pair_after_or_before_loses_to_it():
    film = fake.Film(3)

    def pair(t):
        return Neighbour(film.frame(t), film.frame(t + 1), film.flow(t, t + 1), EVERYWHERE)

    def run(flow):
        frames = film.frame(2), film.frame(3)
        return duels("pair", *frames, flow, EVERYWHERE, after=pair(3), before=pair(1))

    right = run(film.flow(2, 3))
    assert not right[tt.NEXT].lost
    assert not right[tt.PREVIOUS].lost
    assert right[tt.NEXT].pixels > 1000
    # The neighbours' own files are right here, so nothing tells their flow from the one given.
    assert run(film.flow(3, 4))[tt.NEXT].pixels == 0


def test_a_shifted_truth_is_found_when_its_neighbours_are_shifted_too():
    film = fake.Film(3)
    after = Neighbour(film.frame(3), film.frame(4), film.flow(4, 5), EVERYWHERE)
    frames = film.frame(2), film.frame(3)
    results = duels("pair", *frames, film.flow(3, 4), EVERYWHERE, after=after)
    assert results[tt.NEXT].lost
    assert min(results, key=lambda rival: results[rival].share) == tt.NEXT


def test_without_its_own_truth_a_neighbour_with_the_same_motion_is_no_rival():
    film = fake.Film(3)
    same = Neighbour(film.frame(2), film.frame(3))
    duel = duels("pair", film.frame(2), film.frame(3), film.flow(2, 3), EVERYWHERE, after=same)[
        tt.NEXT
    ]
    assert duel.share == 0.5
    assert duel.blind
    assert not duel.lost


def test_unusable_pixels_are_not_asked():
    film = fake.Film(3)
    nowhere = np.zeros(fake.SIZE, bool)
    assert duels("pair", film.frame(0), film.frame(1), film.flow(0, 1), nowhere) == {}
    lies = np.where(EVERYWHERE[..., None] & (np.arange(96) < 48)[None, :, None], 1, -1)
    half = EVERYWHERE & (np.arange(96) < 48)
    flow = (film.flow(0, 1) * lies).astype(np.float32)
    results = duels("pair", film.frame(0), film.frame(1), flow, half)
    assert not results["u and v negated"].lost
    results = duels("pair", film.frame(0), film.frame(1), flow, ~half)
    assert results["u and v negated"].lost


def test_the_choice_of_pixels_is_the_same_every_time():
    flow = fake.Film(3).flow(1, 2)
    assert film_duels(flow) == film_duels(flow)


def test_pooling_adds():
    total = pool([{"a": Duel(10, 4.0)}, {"a": Duel(90, 86.0), "b": Duel(1, 0.0, True)}])
    assert total == {"a": Duel(100, 90.0), "b": Duel(1, 0.0, True)}
    assert total["a"].share == 0.9
    assert total["a"].decided
    assert Duel(100, 50.0).lost
    assert not Duel(100, 50.0, blind=True).lost

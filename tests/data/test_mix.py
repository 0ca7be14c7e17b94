"""Mixing repeats datasets by weight, and changes nothing that was given to it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from lcv.data.dataset import Dataset
from lcv.data.mix import Mix
from lcv.data.record import Record
from lcv.errors import ArgumentError


def dataset(name: str, count: int) -> Dataset:
    return Dataset(name, tuple(Record(f"{name}{i}", Path("a"), Path("b")) for i in range(count)))


A, B = dataset("a", 3), dataset("b", 2)


def test_every_record_comes_as_often_as_its_weight():
    mix = Mix((A, 2), (B, 5))
    assert len(mix) == 2 * 3 + 5 * 2
    counts = Counter(record.name for record in mix)
    assert counts == {"a0": 2, "a1": 2, "a2": 2, "b0": 5, "b1": 5}
    assert [mix[i] for i in range(len(mix))] == list(mix)
    assert mix[-1].name == "b1"
    assert [r.name for r in mix[4:8]] == ["a1", "a2", "b0", "b1"]
    assert mix.name == "2×a + 5×b"


def test_the_proportions_of_rafts_sintel_stage():
    sizes = {"clean": 1041, "final": 1041, "kitti": 200, "hd1k": 1047, "things": 40_302}
    weights = {"clean": 100, "final": 100, "kitti": 200, "hd1k": 5, "things": 1}
    mix = Mix(*((dataset(name, size), weights[name]) for name, size in sizes.items()))
    assert len(mix) == 293_737
    shares = mix.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert round(100 * (shares["clean"] + shares["final"]), 1) == 70.9
    assert round(100 * shares["kitti"], 1) == 13.6
    assert round(100 * shares["hd1k"], 1) == 1.8
    assert round(100 * shares["things"], 1) == 13.7


def test_nothing_mutates():
    mix = Mix((A, 2))
    assert (len(mix), len(A)) == (6, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mix.parts = ()
    assert mix == Mix((A, 2))
    assert mix != Mix((A, 2), (B, 1))


def test_a_mix_of_mixes():
    assert len(Mix((Mix((A, 2), (B, 1)), 3), (B, 1))) == 3 * 8 + 2


def test_refusals():
    for weight in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match=f"the weight of a is {weight!r}, wanted a whole"):
            Mix((A, weight))
    with pytest.raises(ArgumentError, match="empty is empty"):
        Mix((dataset("empty", 0), 1))
    with pytest.raises(ArgumentError, match=r"is not a pair \(dataset, weight\)"):
        Mix(A)
    with pytest.raises(IndexError, match=r"index 3 is not in 0\.\.2"):
        Mix((A, 1))[3]

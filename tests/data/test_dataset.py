"""A dataset is an immutable sequence; what is missing is named with its folder."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from lcv.data.dataset import Dataset, assemble, choose, missing_files
from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError


def records(*names: str, folder: Path = Path("f")) -> tuple[Record, ...]:
    return tuple(Record(n, folder / f"{n}1", folder / f"{n}2", folder / f"{n}f") for n in names)


def test_it_is_a_sequence():
    dataset = Dataset("d", records("a", "b", "c"))
    assert len(dataset) == 3
    assert [r.name for r in dataset] == ["a", "b", "c"]
    assert dataset[-1].name == "c"
    assert [r.name for r in dataset[::2]] == ["a", "c"]
    assert isinstance(dataset[1:], Dataset)
    assert pickle.loads(pickle.dumps(dataset)) == dataset


def test_every_method_returns_a_new_object():
    dataset = Dataset("d", records("a", "b"))
    assert [r.name for r in dataset + Dataset("e", records("c"))] == ["a", "b", "c"]
    assert [r.name for r in dataset.only(lambda r: r.name == "b", "only")] == ["b"]
    assert [r.name for r in dataset.without(["a"])] == ["b"]
    assert len(dataset) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.records = ()
    with pytest.raises(ArgumentError, match=r"d has no record 'z'; its first is 'a'"):
        dataset.without(["z"])


def test_a_list_given_is_copied():
    given = list(records("a"))
    dataset = Dataset("d", given)
    given.clear()
    assert len(dataset) == 1


def test_missing_files_are_found_and_refused(tmp_path):
    pair = records("a", folder=tmp_path)
    for path in pair[0].files()[:2]:
        path.touch()
    assert missing_files(pair) == [(pair[0], tmp_path / "af")]
    with pytest.raises(FileError, match=f"af: missing from the folder {tmp_path}; the pair"):
        assemble("toy", tmp_path, pair, strict=True)
    assert len(assemble("toy", tmp_path, pair, strict=False)) == 1
    with pytest.raises(FileError, match=f"{tmp_path}: no pair of toy was found"):
        assemble("toy", tmp_path, (), strict=True)


def test_a_word_that_is_not_known_lists_those_that_are():
    with pytest.raises(ArgumentError, match="kitti: split is 'tset', wanted one of 'a', 'b'"):
        choose("kitti", "split", "tset", ("a", "b"))

"""FlyingChairs: names, order, its split file, refusals."""

from __future__ import annotations

import pytest

from lcv.data.chairs import chairs, survey
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


def test_pairs_by_number(tmp_path):
    fake.chairs(tmp_path, 3)
    dataset = chairs(tmp_path)
    assert [r.name for r in dataset] == ["00001", "00002", "00003"]
    assert [p.name for p in dataset[1].files()] == [
        "00002_img1.ppm",
        "00002_img2.ppm",
        "00002_flow.flo",
    ]
    assert not dataset[0].sparse


def test_the_split_file_belongs_to_numbers(tmp_path):
    fake.chairs(tmp_path, 4, split="1\n2\n1\n2\n")
    assert [r.name for r in chairs(tmp_path, "train")] == ["00001", "00003"]
    assert [r.name for r in chairs(tmp_path, "val")] == ["00002", "00004"]
    for path in (tmp_path / "data").glob("00001_*"):
        path.unlink()
    # A partial copy: the others keep their side.
    assert [r.name for r in chairs(tmp_path, "train")] == ["00003"]
    assert [h.label for h in survey(tmp_path).holdouts] == ["FlyingChairs_train_val.txt"]


def test_rafts_name_of_the_split_file_and_one_given(tmp_path):
    fake.chairs(tmp_path, 2)
    (tmp_path / "chairs_split.txt").write_text("2\n1\n")
    assert [r.name for r in chairs(tmp_path, "train")] == ["00002"]
    (tmp_path / "mine.txt").write_text("1\n2\n")
    assert [r.name for r in chairs(tmp_path, "train", split_file=tmp_path / "mine.txt")] == [
        "00001"
    ]


def test_refusals(tmp_path):
    fake.chairs(tmp_path, 2)
    with pytest.raises(
        ArgumentError, match="chairs: split is 'test', wanted one of 'all', 'train'"
    ):
        chairs(tmp_path, "test")
    with pytest.raises(FileError, match=r"expected the split file .*FlyingChairs_train_val\.txt"):
        chairs(tmp_path, "val")
    for text, message in (
        ("1\n", r"has 1 lines, but there is a pair numbered 2"),
        ("1\n3\n", "'3'"),
    ):
        (tmp_path / "FlyingChairs_train_val.txt").write_text(text)
        with pytest.raises(FileError, match=message):
            chairs(tmp_path, "train")
    (tmp_path / "data" / "00002_img2.ppm").unlink()
    with pytest.raises(FileError, match=r"00002_img2\.ppm: missing from the folder .*data"):
        chairs(tmp_path)


def test_a_split_file_that_is_not_there(tmp_path):
    fake.chairs(tmp_path, 1)
    with pytest.raises(FileError, match=r"mine\.txt: there is no such split file"):
        chairs(tmp_path, "train", split_file=tmp_path / "mine.txt")

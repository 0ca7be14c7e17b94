"""A list of one's own pairs: relative paths, comments, quotes, refusals with line numbers."""

from __future__ import annotations

import pytest

from lcv.data.listfile import is_list, listfile, split_words, survey
from lcv.errors import FileError
from testing import datasets as fake


def test_a_list_with_comments_quotes_and_pairs_without_truth(tmp_path):
    (tmp_path / "my scene").mkdir()
    for name in ("a#1.png", "b.png", "my scene/c.png", "my scene/d.png", "f.flo", "g.png"):
        (tmp_path / name).touch()
    path = tmp_path / "list.txt"
    path.write_text(
        "\ufeff# a comment\n"
        "a#1.png b.png f.flo  # the hash inside a name is part of it\n"
        "\n"
        "  \"my scene/c.png\" 'my scene/d.png'\n"
        "b.png a#1.png g.png\n",
        encoding="utf-8",
    )
    dataset = listfile(path)
    assert [p.name for p in dataset[0].files()] == ["a#1.png", "b.png", "f.flo"]
    assert dataset[1].flow is None
    assert dataset[1].scene == "my scene"
    assert [r.sparse for r in dataset] == [False, False, True]
    assert [r.name for r in dataset] == ["list:2", "list:4", "list:5"]
    assert is_list(path)


def test_paths_are_relative_to_the_list_and_records_read(tmp_path, monkeypatch):
    path = fake.sequence_list(tmp_path / "deep", frames=3)
    monkeypatch.chdir(tmp_path)
    dataset = listfile("deep/train.txt")
    assert len(dataset) == 2
    assert dataset[0].read().flow.shape == (*fake.SIZE, 2)
    assert listfile(path)[1].image1 == path.parent / "train_001.png"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.png\n", r"list\.txt:1: 1 word, wanted `image1 image2 flow`"),
        ("# x\na b c d\n", r"list\.txt:2: 4 words"),
        ('"a.png b.png f.flo\n', r"list\.txt:1: a quotation mark is not closed"),
        ("#" * 20_001, r"list\.txt:1: is longer than 20,000 characters"),
        ("# only this\n", r"list\.txt: names no pair"),
        ("\na.png b.png f.flo\n", r"list\.txt:2: names .*a\.png, which is missing from the folder"),
    ],
)
def test_refusals_name_the_line(tmp_path, text, message):
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(FileError, match=message):
        listfile(tmp_path / "list.txt")


def test_what_is_no_list(tmp_path):
    with pytest.raises(FileError, match=r"none\.txt: there is no such list file"):
        listfile(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileError, match=r"bytes\.txt: not a text file"):
        listfile(tmp_path / "bytes.txt")
    (tmp_path / "readme.txt").write_text("These are my pictures.\n")
    assert not is_list(tmp_path / "readme.txt")
    (tmp_path / "split.txt").write_text("1\n2\n")
    assert not is_list(tmp_path / "split.txt")
    for text in ("", "# a.png b.png\n\n", "'a.png b.png\n", "a.png b.png " * 2000):
        (tmp_path / "odd.txt").write_text(text)
        assert is_list(tmp_path / "odd.txt") is False


def test_words():
    assert split_words("a  b\tc", "x") == ["a", "b", "c"]
    assert split_words("'a b' \"c'd\"", "x") == ["a b", "c'd"]
    assert split_words("# all", "x") == []
    with pytest.raises(FileError, match="x: a quotation mark is not closed, or closes inside"):
        split_words("'a'b", "x")


def test_train_lists_are_held_against_validation_lists(tmp_path):
    fake.sequence_list(tmp_path, frames=2, name="my_train.txt")
    fake.sequence_list(tmp_path, frames=2, seed=1, name="my_val.txt")
    found = survey(tmp_path)
    assert [p.label for p in found.parts] == ["my_train.txt", "my_val.txt"]
    assert [h.label for h in found.holdouts] == ["my_train.txt against my_val.txt"]

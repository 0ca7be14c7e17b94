"""Files appear whole or not at all."""

from __future__ import annotations

import stat

import pytest

from lcv.errors import FileError
from lcv.files import check_output, whole_file


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as temporary:
        temporary.write_text("done")
        assert not path.exists()
    assert path.read_text() == "done"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR


def test_nothing_is_left_behind_by_an_error(tmp_path):
    def fail():
        with whole_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_a_sentence(tmp_path):
    def fail():
        with whole_file(tmp_path / "a.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(
        FileError, match=r"a\.txt: writing failed, nothing was left behind.*No space"
    ):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("mine")
    with pytest.raises(FileError, match=r"a\.txt: exists already; .* --overwrite"):
        check_output(path)
    with pytest.raises(FileError, match="exists already"), whole_file(path) as temporary:
        temporary.write_text("other")
    assert path.read_text() == "mine"
    with whole_file(path, overwrite=True) as temporary:
        temporary.write_text("other")
    assert path.read_text() == "other"


def test_a_folder_in_the_way_or_missing_is_named(tmp_path):
    with pytest.raises(FileError, match="this is a folder, wanted the name of a file"):
        check_output(tmp_path)
    with pytest.raises(FileError, match="the folder .*none does not exist; make it first"):
        check_output(tmp_path / "none" / "a.txt")

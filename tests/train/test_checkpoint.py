"""The folder of checkpoints: what a save leaves at every moment, and what is read back from it."""

from __future__ import annotations

import json
import os

import pytest
import torch

from lcv.errors import FileError
from lcv.train.checkpoint import Folder, read


def content(step: int) -> dict:
    return {"format": "lcv training 1", "step": step}


def steps(folder: Folder) -> dict[str, int]:
    return {path.name: read(path)["step"] for path in sorted(folder.checkpoints.iterdir())}


@pytest.fixture
def folder(tmp_path) -> Folder:
    made = Folder(tmp_path / "runs" / "one")
    made.prepare({"steps": 3})
    return made


def test_a_run_finds_its_folders_its_configuration_and_no_leftovers(folder):
    assert folder.checkpoints.is_dir()
    assert (folder.run / "config.json").read_text() == '{\n  "steps": 3\n}\n'
    (folder.checkpoints / ".last.new.x1.part").touch()
    (folder.checkpoints / "step-2.pt").touch()
    folder.prepare({"steps": 4})
    assert json.loads((folder.run / "config.json").read_text()) == {"steps": 4}
    assert [path.name for path in folder.checkpoints.iterdir()] == ["step-2.pt"]


def test_the_last_and_the_one_before_are_kept_and_whatever_has_a_name(folder):
    assert folder.newest() is None
    folder.save(content(1), "best", "step-1")
    assert steps(folder) == {"best.pt": 1, "last.pt": 1, "step-1.pt": 1}
    folder.path("best").with_suffix(".link").touch()  # as of a run that was killed
    folder.path("last").with_suffix(".new").touch()
    folder.save(content(2), "best")
    folder.save(content(3))
    assert steps(folder) == {"best.pt": 2, "last.pt": 3, "previous.pt": 2, "step-1.pt": 1}


def test_a_copy_is_made_where_no_link_can_be(folder, monkeypatch):
    def refuse(*_):
        raise OSError("this disk has no links")

    monkeypatch.setattr(os, "link", refuse)
    folder.save(content(1), "best")
    assert steps(folder) == {"best.pt": 1, "last.pt": 1}


def test_all_of_it_is_on_the_disk_before_it_has_its_name(folder, monkeypatch):
    seen = []
    sync = os.fsync

    def note(file):
        seen.append((os.fstat(file).st_size, folder.path("last").exists()))
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    folder.save(content(1))
    assert (folder.path("last").stat().st_size, False) in seen


def test_the_newest_that_is_whole_is_read(folder):
    for step in (1, 2):
        folder.save(content(step))
    torch.save(content(3), folder.checkpoints / "last.new")
    found = []
    for name in ("last.new", "last.pt", "previous.pt"):
        path, read_back = folder.newest()
        found.append((path.name, read_back["step"]))
        (folder.checkpoints / name).write_bytes(b"cut")
    assert found == [("last.new", 3), ("last.pt", 2), ("previous.pt", 1)]
    with pytest.raises(FileError, match=r"no checkpoint of this run .*new.*last\.pt.*previous\.pt"):
        folder.newest()


@pytest.mark.parametrize("other", [{"format": "lcv training 2"}, {"model": {}}, [1]])
def test_another_content_is_refused(folder, other):
    path = folder.checkpoints / "last.pt"
    torch.save(other, path)
    with pytest.raises(FileError, match=r"last\.pt: not a checkpoint of a training run of ours"):
        read(path)


def test_whose_checkpoint_it_is(folder, tmp_path):
    assert folder.has(folder.path("best"))
    assert folder.has(tmp_path / "runs" / "two" / ".." / "one" / "checkpoints" / "x.pt")
    assert not folder.has(tmp_path / "runs" / "two" / "checkpoints" / "last.pt")

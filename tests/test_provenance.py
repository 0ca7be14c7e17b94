"""A result says what it was measured with, and nothing about whose machine it was."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest
import torch

from lcv import provenance as module
from lcv.errors import FileError
from lcv.provenance import provenance
from lcv.version import __version__

ROOT = Path(__file__).resolve().parents[1]


def test_it_names_version_torch_machine_and_threads():
    said = provenance()
    assert said["lcv"] == __version__
    assert said["torch"] == torch.__version__
    assert said["python"] == platform.python_version()
    assert said["threads"] == torch.get_num_threads()
    assert said["device"].endswith(f"{os.cpu_count()} cores")
    assert said["weights"] is None
    assert json.loads(json.dumps(said)) == said


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_the_commit_is_that_of_the_checkout():
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    said = provenance()
    assert said["commit"] == head
    assert isinstance(said["modified"], bool)


def test_changed_files_are_told_and_other_checkouts_are_not_ours(tmp_path):
    def git(*words: str) -> None:
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-qm", "first")
    commit, modified = module._commit(tmp_path)
    assert len(commit) == 40
    assert modified is False
    module._commit.cache_clear()
    (tmp_path / "file").write_text("two")
    assert module._commit(tmp_path) == (commit, True)
    inside = tmp_path / "site-packages"
    inside.mkdir()
    assert module._commit(inside) == (None, None)


def test_weights_are_known_by_their_hash_and_not_by_their_folder(tmp_path):
    file = tmp_path / "mine.pth"
    file.write_bytes(b"not looked into")
    said = provenance(file)
    sha256 = hashlib.sha256(b"not looked into").hexdigest()
    assert said["weights"] == {"file": "mine.pth", "sha256": sha256, "published": None}
    text = json.dumps(said)
    assert str(tmp_path) not in text
    assert str(ROOT) not in text
    assert str(Path.home()) not in text or Path.home() == Path("/")
    assert platform.node() not in text or len(platform.node()) < 4


def test_weights_that_are_not_there_are_named(tmp_path):
    with pytest.raises(FileError, match="lost.pth: cannot be read"):
        provenance(tmp_path / "lost.pth")

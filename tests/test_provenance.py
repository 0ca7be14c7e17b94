"""A result says what it was measured with, and nothing about whose machine it was."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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


def test_a_state_is_known_by_names_shapes_and_values():
    """sha256 over "name shape dtype" and the bytes of each tensor, by name."""

    def state(**tensors):
        return SimpleNamespace(state_dict=lambda: tensors)

    digest = hashlib.sha256()
    for name, value in (("a", [1.0]), ("b", [2.0, 3.0])):
        digest.update(f"{name} ({len(value)},) torch.float32".encode())
        digest.update(np.float32(value).tobytes())
    a, b = torch.tensor([1.0]), torch.tensor([2.0, 3.0])
    assert module.state_sha256(state(b=b, a=a)) == digest.hexdigest()
    table = torch.arange(6.0).view(2, 3)
    assert module.state_sha256(state(x=table.T)) != module.state_sha256(state(x=table.view(3, 2)))


def test_devices_in_words(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    assert module.device_words("cuda:1") == "GPU 1"
    assert module.device_words("mps") == "mps"
    monkeypatch.setattr(module, "_processor", lambda: "a processor")
    assert (
        module.device_words()
        == module.device_words("cpu")
        == f"a processor, {os.cpu_count()} cores"
    )


def test_the_processor_is_the_first_that_linux_names(monkeypatch):
    find = module._processor.__wrapped__
    text = "processor : 0\nmodel name : One : a\nmodel name : Two\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    assert find() == "One : a"
    monkeypatch.setattr(platform, "processor", lambda: "p")
    text = "nothing"
    assert find() == "p"
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "m")
    assert find() == "m"


def test_git_is_asked_without_a_lock_and_may_be_missing(monkeypatch):
    asked = []

    def run(command, **options):
        asked.append((command, options.pop("env")["GIT_OPTIONAL_LOCKS"], options))
        return SimpleNamespace(stdout=" out \n", returncode=code)

    monkeypatch.setattr(subprocess, "run", run)
    code = 0
    assert module._git(Path("/x"), "status") == "out"
    options = {"capture_output": True, "text": True, "timeout": 20, "check": False}
    assert asked == [(["git", "-C", "/x", "status"], "0", options)]
    code = 1
    assert module._git(Path("/x"), "status") is None

    def missing(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert module._git(Path("/x"), "status") is None


def test_a_checkout_that_git_refuses_has_no_commit(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(module, "_git", lambda *_: None)
    assert module._commit(tmp_path) == (None, None)

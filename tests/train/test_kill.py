"""Kill −9 at any moment, resume, and end with the weights of an undisturbed run, to the bit."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lcv.train import DataConfig, PartConfig, run
from lcv.train.checkpoint import Folder, read
from testing import datasets

SCRIPT = Path(__file__).with_name("processes.py")


def start(config, tmp_path, *words: str, **options) -> subprocess.Popen:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.as_dict()))
    command = [sys.executable, str(SCRIPT), str(path), "--mark", str(tmp_path / "saving"), *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def last_step(folder: str) -> int:
    newest = Folder(folder).newest()
    return 0 if newest is None else newest[1]["step"]


def kill_in_a_save(process: subprocess.Popen, mark: Path) -> bool:
    """Whether the process was killed while a checkpoint was on its way to the disk."""
    while process.poll() is None:
        if mark.exists():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.002)
    return False


def kill_after(process: subprocess.Popen, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("source", ["procedural", "files"])
def test_ten_kills_five_a_source_change_no_bit(tiny, tmp_path, source):
    config = tiny(steps=14, save_every=2, log_every=3)
    if source == "files":
        config = replace(config, data=file_data(tmp_path))
    torch.set_num_threads(1)
    whole = run(replace(config, folder=str(tmp_path / "whole")), device="cpu")

    mark = tmp_path / "saving"
    in_saves = 0
    chance = random.Random(source)
    for kill in range(5):
        mark.unlink(missing_ok=True)
        process = start(config, tmp_path)
        if kill < 2:
            in_saves += kill_in_a_save(process, mark)
        else:
            kill_after(process, 2.5 + 2.0 * chance.random())
    assert in_saves == 2
    mark.unlink(missing_ok=True)
    process = start(config, tmp_path)
    assert process.wait(120) == 0, process.stderr.read()
    content = read(Path(config.folder) / "checkpoints" / "last.pt")
    assert content["step"] == config.steps
    for name, value in whole.state_dict().items():
        assert torch.equal(content["model"][name], value), name


def file_data(tmp_path) -> DataConfig:
    """Three dense pairs on disk, read by two worker processes."""
    datasets.sintel(
        tmp_path / "datasets" / "Sintel", {"alley_1": 4}, test={"cave_3": 2}, maps=False
    )
    part = PartConfig("sintel", "raft-sintel")
    root = str(tmp_path / "datasets")
    return DataConfig("files", root=root, parts=(part,), size=(64, 64), workers=2)


def test_a_disk_that_fills_while_saving(tiny, tmp_path):
    """By a limit on file sizes: the checkpoint before it stays, and the message says so."""
    config = tiny(steps=4, save_every=2)
    run(config, device="cpu", until=2)
    before = (Path(config.folder) / "checkpoints" / "last.pt").read_bytes()

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    process = start(config, tmp_path, preexec_fn=small_files)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "the checkpoint before it is intact" in errors
    assert (Path(config.folder) / "checkpoints" / "last.pt").read_bytes() == before
    assert last_step(config.folder) == 2


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not true():
        time.sleep(0.02)
    assert true()


def has_taken(config, steps: int) -> bool:
    log = Path(config.folder) / "log.jsonl"
    return log.exists() and f'"step": {steps},' in log.read_text()


def test_sigterm_saves_and_leaves(tiny, tmp_path):
    config = tiny(steps=4000, save_every=4000, log_every=1)
    process = start(config, tmp_path)
    wait_for(lambda: has_taken(config, 2))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.stderr.read()
    assert 2 <= last_step(config.folder) < 4000


def test_a_second_ctrl_c_does_not_wait_for_the_save(tiny, tmp_path):
    """The first one saves, here for a minute; the second leaves the checkpoint before it."""
    config = tiny(steps=4000, save_every=4000, log_every=1)
    run(config, device="cpu", until=2)
    process = start(config, tmp_path, "--slow", "60")
    wait_for(lambda: has_taken(config, 3))
    process.send_signal(signal.SIGINT)
    wait_for((tmp_path / "saving").exists)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=50)
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert last_step(config.folder) == 2
    checkpoints = Path(config.folder) / "checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["last.pt"], "something half-written"

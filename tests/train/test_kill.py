"""Kill −9 at any moment, resume, and end with the weights of an undisturbed run, to the bit."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
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
from train import processes

SCRIPT = Path(processes.__file__)
# Ten processes that each import everything would take a minute. Those that are to be killed are
# forked, fresh, from one that has imported it all and done nothing else.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["lcv.train", "lcv.recipes.stored", "torch._dynamo"])


def words_for(config, tmp_path, *words: str) -> list[str]:
    """The arguments of the script."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.as_dict()))
    return [str(path), "--mark", str(tmp_path / "saving"), *words]


def start(config, tmp_path, *words: str, **options) -> subprocess.Popen:
    command = [sys.executable, str(SCRIPT), *words_for(config, tmp_path, *words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def last_step(folder: str) -> int:
    newest = Folder(folder).newest()
    return 0 if newest is None else newest[1]["step"]


def apart(words: list[str]) -> None:
    """A run that leads a process group of its own, to which its loader workers belong."""
    os.setpgrp()
    processes.main(words)


def end_orphans(group: int) -> None:
    """End loader workers at once: those still starting would notice only when they have."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def wait_until(process, true: Callable[[], bool]) -> None:
    while process.is_alive() and not true():
        time.sleep(0.002)


def reach_a_save(process, mark: Path) -> None:
    """Until the second checkpoint of this process is on its way to the disk."""
    wait_until(process, mark.exists)
    wait_until(process, lambda: not mark.exists())
    wait_until(process, mark.exists)


@pytest.mark.parametrize("source", ["procedural", "files"])
def test_ten_kills_five_a_source_change_no_bit(tiny, tmp_path, source):
    config = tiny(steps=20, save_every=2, log_every=3)
    if source == "files":
        config = replace(config, data=file_data(tmp_path))
    torch.set_num_threads(1)
    whole = run(replace(config, folder=str(tmp_path / "whole")), device="cpu").state_dict()

    mark, began = tmp_path / "saving", tmp_path / "began"
    chance = random.Random(source)
    for kill in range(5):
        mark.unlink(missing_ok=True)
        began.unlink(missing_ok=True)
        slow = "0.5" if kill < 2 else "0.15"  # long enough to be met in it
        words = words_for(config, tmp_path, "--began", str(began), "--slow", slow)
        process = FORKS.Process(target=apart, args=(words,))
        process.start()
        if kill < 2:
            reach_a_save(process, mark)
        else:
            wait_until(process, began.exists)
            process.join(0.6 * chance.random())
        process.kill()
        process.join()
        end_orphans(process.pid)
        assert process.exitcode == -signal.SIGKILL, "it was over before it was killed"
        assert kill >= 2 or mark.exists(), "it was not saving when it was killed"
    assert 0 < last_step(config.folder) < config.steps
    run(config, "auto", device="cpu")
    content = read(Path(config.folder) / "checkpoints" / "last.pt")
    assert content["step"] == config.steps
    for name, value in whole.items():
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

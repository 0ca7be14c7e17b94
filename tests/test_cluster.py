"""Ray: tasks that end well whatever happens to a worker, and the files of one process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lcv.cli.predict_inputs import find_inputs
from lcv.cluster import Cluster
from lcv.errors import ArgumentError, FileError
from lcv.predict import Predictor
from lcv.predict.job import Job, Listener
from lcv.predict.run import Run
from predict.small_jobs import PLAIN, made, run
from testing.extras import needs
from testing.footage import save_frames, save_weights

PAIRS = 24
SECONDS = 180


@pytest.fixture(scope="module")
def cluster():
    needs("ray")
    with Cluster() as started:
        yield started


@pytest.fixture
def time_limit():
    def give_up(*_):
        raise TimeoutError(f"not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Killer(Listener):
    """Kills a worker in the middle of its work, once."""

    def __init__(self):
        self.killed, self.finished = [], 0

    def advance(self, pairs=1, computed=True):
        self.finished += pairs
        end = time.monotonic() + 1
        while not self.killed and self.finished >= PAIRS // 3 and time.monotonic() < end:
            # Between two tasks a worker is called otherwise for a moment.
            for worker in islice(self.workers(), 1):
                self.killed.append(worker)
                os.kill(worker, signal.SIGKILL)

    def workers(self):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes().startswith(b"ray::compute_chunk"):
                    yield int(path.parent.name)
            except OSError:
                pass


def test_two_workers_of_which_one_is_killed_give_the_files_of_one_process(
    cluster, tmp_path, time_limit
):
    assert cluster.workers >= 2
    walk = save_frames(tmp_path / "walk", PAIRS + 1)
    weights = save_weights(tmp_path / "weights.safetensors")
    options = {"model": "raft-small", "weights": str(weights), "iters": 1, "device": "cpu"}
    predictor, threads = Predictor(**options), torch.get_num_threads()
    torch.set_num_threads(cluster.cores)  # sums over more threads round in their own way
    try:
        run(predictor, walk, tmp_path / "one", clip=True)
    finally:
        torch.set_num_threads(threads)
    killer = Killer()
    sequences = find_inputs([str(walk)]).sequences
    job = Job(sequences, tmp_path / "two", **PLAIN, clip=True)
    summary = Run(predictor, job, killer).go(cluster, options)
    assert killer.killed
    assert (summary.done + summary.there, summary.failures) == (PAIRS, {})
    assert made(tmp_path / "two") == made(tmp_path / "one")
    writers = {path.name.split("-")[-2] for path in (tmp_path / "two" / "done").iterdir()}
    assert len(writers) >= 2, "more than one worker computed pairs"


def test_an_error_of_a_task_is_its_own(cluster):
    def fail(common, task):
        raise FileError(f"{common}: {task}")

    with pytest.raises(FileError, match=r"^a\.png: 3$"):
        [*cluster.map(fail, "a.png", [3])]


def test_without_ray_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ArgumentError, match=r"--ray needs Ray, .* pip install 'lcv-flow\[ray\]'"):
        Cluster()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "frames", "ray://127.0.0.1:1"])
def test_an_address_where_no_cluster_is_is_refused_at_once(address):
    needs("ray")
    with (
        pytest.raises(ArgumentError, match=f"--ray {address}: no cluster answers"),
        Cluster(address),
    ):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_that_answers_is_handed_to_ray(monkeypatch, scheme):
    asked = []

    def init(address, **options):
        asked.append(address)
        raise RuntimeError("no Ray here, but somebody listens")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"{scheme}127.0.0.1:{listening.getsockname()[1]}"
        needs("ray")
        cluster = Cluster(address)
        monkeypatch.setattr(cluster, "ray", SimpleNamespace(init=init))
        with pytest.raises(ArgumentError, match="no Ray here, but somebody listens"), cluster:
            pass
    assert asked == [address]

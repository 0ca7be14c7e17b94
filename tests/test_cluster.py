"""Ray: tasks that end well whatever happens to a worker, and the files of one process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from lcv.cli.predict_inputs import find_inputs
from lcv.cluster import Cluster
from lcv.errors import ArgumentError, FileError, LcvError
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


class Pretended:
    """Ray with these resources, all of whose tasks are done at once; what it was asked."""

    exceptions = SimpleNamespace(RayTaskError=KeyError, RayError=ValueError)

    def __init__(self, *machines: dict[str, float]) -> None:
        self.machines, self.asked, self.begun = machines, [], 0

    def init(self, address, **options):
        self.asked.append(("init", address, options))

    def cluster_resources(self):
        return sum(map(Counter, self.machines), Counter())

    def nodes(self):
        gone = {"Resources": {"CPU": 64.0}, "Alive": False}
        return [gone, *({"Resources": each, "Alive": True} for each in self.machines)]

    def shutdown(self):
        self.asked.append(("shutdown",))

    def remote(self, **needs):
        self.asked.append(("remote", needs))

        def wrap(function):
            def begin(common, task):
                self.begun += 1
                return function(common, task)

            return SimpleNamespace(remote=begin)

        return wrap

    def put(self, common):
        return common

    def wait(self, running):
        return running[:1], running[1:]

    def get(self, ended):
        if isinstance(ended, Exception):
            raise ended
        return ended

    def cancel(self, task, force):
        self.asked.append(("cancel", task, force))


def pretended(monkeypatch, *machines, address="local", gpus=True) -> Cluster:
    monkeypatch.setitem(sys.modules, "ray", Pretended(*machines))
    return Cluster(address, gpus=gpus)


@pytest.mark.parametrize(
    ("machines", "workers", "per_machine", "needs"),
    [
        ([{"CPU": 16.0}], 4, 4, {"num_cpus": 4}),
        ([{"CPU": 6.0}], 2, 2, {"num_cpus": 3}),
        ([{"CPU": 2.0}], 2, 2, {"num_cpus": 1}),
        ([{"CPU": 1.0}], 1, 1, {"num_cpus": 1}),
        ([{}], 1, 1, {"num_cpus": 1}),
        ([{"CPU": 4.0}, {"CPU": 4.0}], 4, 2, {"num_cpus": 2}),
        ([{"CPU": 16.0}, {"CPU": 6.0}, {"CPU": 0.5}], 7, 5, {"num_cpus": 3}),
        (
            [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 16.0, "GPU": 1.0}],
            3,
            1,
            {"num_gpus": 1, "num_cpus": 1},
        ),
    ],
)
def test_workers_by_what_a_cluster_has(monkeypatch, machines, workers, per_machine, needs):
    """A worker's cores are those of one machine; `per_machine` is that of the largest."""
    with pretended(monkeypatch, *machines) as cluster:
        found = cluster.workers, cluster.per_machine, cluster.needs
        assert found == (workers, per_machine, needs)
        assert list(cluster.map(max, 2, [1, 3])) == [2, 3]
    options = {"logging_level": 40, "log_to_driver": False, "include_dashboard": False}
    assert cluster.ray.asked == [
        ("init", "local", options),
        ("remote", {**needs, "max_retries": 3}),
        ("shutdown",),
    ]
    assert (os.environ["RAY_USAGE_STATS_ENABLED"], os.environ["RAY_IGNORE_UNHANDLED_ERRORS"]) == (
        "0",
        "1",
    )


def test_gpus_are_left_alone_where_the_cpu_was_asked_for(monkeypatch):
    with pretended(monkeypatch, {"CPU": 16.0, "GPU": 2.0}, gpus=False) as cluster:
        found = cluster.workers, cluster.per_machine, cluster.needs
        assert found == (4, 4, {"num_cpus": 4})


def test_a_cluster_that_is_there_is_joined_as_it_is(monkeypatch):
    with pretended(monkeypatch, {"CPU": 4.0}, address="auto") as cluster:
        pass
    assert cluster.ray.asked[0] == ("init", "auto", {"logging_level": 40, "log_to_driver": False})


def test_four_tasks_a_worker_are_handed_out_and_those_left_are_cancelled(monkeypatch):
    with pretended(monkeypatch, {"CPU": 2.0}) as cluster:
        results = cluster.map(lambda common, task: task, None, iter(range(100)))
        assert [next(results), cluster.ray.begun] == [0, 8]
        assert [next(results), cluster.ray.begun] == [1, 9]
        results.close()
    cancelled = [each[1:] for each in cluster.ray.asked if each[0] == "cancel"]
    assert cancelled == [(task, True) for task in range(2, 9)]


def test_a_worker_that_dies_again_and_again_is_told_in_a_sentence(monkeypatch):
    died = ValueError("killed\n   by " + "x" * 500)
    failed = KeyError()
    failed.cause = FileError("a.png: is cut")
    with pretended(monkeypatch, {"CPU": 2.0}) as cluster:
        with pytest.raises(
            LcvError, match=r"task .* failed after up to 4 tries: killed by x{290}$"
        ):
            list(cluster.map(lambda common, task: task, None, [died]))
        with pytest.raises(FileError, match=r"a\.png: is cut"):
            list(cluster.map(lambda common, task: task, None, [failed]))


def test_an_error_of_a_task_is_its_own(cluster):
    def fail(common, task):
        raise FileError(f"{common}: {task}")

    with pytest.raises(FileError, match=r"^a\.png: 3$"):
        [*cluster.map(fail, "a.png", [3])]


def test_a_worker_that_lacks_lcv_or_files_is_told_in_a_sentence(cluster, monkeypatch):
    def read(common, task):
        Path(common).read_bytes()

    advice = "every machine needs lcv, and the same files under the same paths"
    with pytest.raises(LcvError, match=rf"No such file or directory: '/no/a\.png'; {advice}$"):
        [*cluster.map(read, "/no/a.png", [1])]
    only_here = ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    exec("def work(common, task): pass", vars(only_here))
    with pytest.raises(LcvError, match=f"failed: .*No module named 'only_here'; {advice}$"):
        [*cluster.map(only_here.work, None, [1])]

    def fill(common, task):
        raise OSError(28, "No space left on device")

    with pytest.raises(LcvError, match="of the cluster failed: .*No space left on device$"):
        [*cluster.map(fill, None, [1])]


def test_without_ray_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ArgumentError, match=r"--ray needs Ray, .* pip install 'lcv-flow\[ray\]'"):
        Cluster()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "frames", "a:b", ":1", "ray://127.0.0.1:1"])
def test_an_address_where_no_cluster_is_is_refused_at_once(address):
    needs("ray")
    why = "" if address.endswith("127.0.0.1:1") else "not of the form HOST:PORT"
    with (
        pytest.raises(ArgumentError, match=f"--ray {address}: no cluster answers: {why}"),
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

"""One process or many: shares of a batch, and what is asked of the group, which is none alone."""

from __future__ import annotations

import gc
import itertools

import pytest
import torch
import torch.distributed as dist

from lcv.errors import ArgumentError
from lcv.train import TrainConfig, distributed
from lcv.train.distributed import Processes, check_device, join, leave, replicated

CPU = torch.device("cpu")


@pytest.fixture
def group(monkeypatch):
    """Two processes whose tensors are alike, and whose names end with their rank; what was asked."""
    asked = []

    def all_reduce(value, op=dist.ReduceOp.SUM):
        asked.append(op)
        if op == dist.ReduceOp.SUM:
            value.mul_(2)
        else:
            value.fill_(1)

    def gather(found, names):
        asked.append("gather")
        found[:] = [[f"{name}{rank}" for name in names] for rank in range(len(found))]

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    monkeypatch.setattr(dist, "all_gather_object", gather)
    monkeypatch.setattr(dist, "barrier", lambda: asked.append("barrier"))
    return asked


def test_consecutive_parts_of_every_step_are_shared_out():
    shares = [list(Processes(rank, 3, CPU).share(6, 2)) for rank in range(3)]
    assert shares == [[12, 13], [14, 15], [16, 17]]
    assert list(Processes(0, 1, CPU).share(2, 3)) == [6, 7]
    with pytest.raises(ArgumentError, match="batch is 7, wanted a multiple of the 3 processes"):
        Processes(0, 3, CPU).share(7, 0)


def test_the_first_of_them_is_one_alone():
    assert [Processes(rank, 2, CPU).is_first for rank in range(2)] == [True, False]


def test_one_process_asks_nobody(group):
    alone, value = Processes(0, 1, CPU), torch.tensor([1.0, 2.0])
    assert alone.mean(value) is value
    assert alone.sum(value) is value
    assert [alone.any(here) for here in (False, True)] == [False, True]
    assert alone.gather(["a"]) == ["a"]
    alone.wait()
    assert group == []


def test_several_processes_meet(group):
    two, value = Processes(1, 2, CPU), torch.tensor([1.0, 2.0], requires_grad=True)
    assert two.mean(value).tolist() == [1, 2]
    assert two.sum(value).tolist() == [2, 4]
    assert value.tolist() == [1, 2], "the process's own stays"
    assert two.any(False) is True
    assert two.gather(["a", "b"]) == ["a0", "b0", "a1", "b1"]
    two.wait()
    assert group == [*[dist.ReduceOp.SUM] * 2, dist.ReduceOp.MAX, "gather", "barrier"]


@pytest.mark.parametrize(
    ("asked", "there", "device"),
    [
        (None, False, "cpu"),
        (None, True, "cuda"),
        ("cpu", True, "cpu"),
        ("cuda:1", True, "cuda:1"),
    ],
)
def test_without_torchrun_we_are_alone_on_the_best_device(monkeypatch, asked, there, device):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert join(asked) == Processes(0, 1, torch.device(device))


@pytest.fixture
def torchrun(monkeypatch):
    """Process 3 of 4, the second of its machine, at its second attempt; what was asked."""
    asked = []
    for name, value in (("WORLD_SIZE", 4), ("LOCAL_RANK", 1), ("TORCHELASTIC_RESTART_COUNT", 2)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(distributed, "_groups", itertools.count(5))
    monkeypatch.setattr(distributed, "rendezvous", lambda where: iter([(where, 3, 4)]))
    monkeypatch.setattr(dist, "PrefixStore", lambda prefix, store: (prefix, store))
    monkeypatch.setattr(dist, "init_process_group", lambda *a, **k: asked.append((a, k)))
    monkeypatch.setattr(dist, "is_initialized", lambda: False)
    monkeypatch.setattr(dist, "get_rank", lambda: 3)
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", asked.append)
    monkeypatch.setattr("importlib.import_module", asked.append)
    return asked


@pytest.mark.parametrize(
    ("device", "own", "backend"),
    [("cpu", "cpu", "gloo"), ("cuda", "cuda:1", "cpu:gloo,cuda:nccl")],
)
def test_under_torchrun_a_group_is_joined(torchrun, monkeypatch, device, own, backend):
    assert join(device) == Processes(3, 4, torch.device(own))
    chosen = [torch.device(own)] if device == "cuda" else []
    store = ("attempt 2, group 5", "env://")
    assert torchrun == [
        *chosen,
        "torch.distributed.nn.functional",
        ((backend,), {"store": store, "rank": 3, "world_size": 4}),
    ]
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT")
    join(device)
    assert torchrun[-1][1]["store"][0] == "attempt 0, group 6"


def test_a_group_that_is_there_is_not_joined_again(torchrun, monkeypatch):
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    assert join("cpu") == Processes(3, 4, CPU)
    assert torchrun == []


def test_a_graph_needs_cuda():
    check_device(TrainConfig(graph=True), torch.device("cuda"))
    check_device(TrainConfig(), CPU)
    with pytest.raises(ArgumentError, match="graph is True, which needs CUDA, and the device is c"):
        check_device(TrainConfig(graph=True), CPU)


def test_a_group_is_left_once_and_what_held_it_collected(monkeypatch):
    done = []
    monkeypatch.setattr(dist, "destroy_process_group", lambda: done.append("destroyed"))
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))
    for there in (False, True):
        monkeypatch.setattr(dist, "is_initialized", lambda there=there: there)
        leave()
    assert done == ["destroyed", "collected"]


def test_every_process_keeps_its_own_buffers_by_whatever_word_torch_has_for_it(monkeypatch):
    def old(model, broadcast_buffers=True):
        return model, broadcast_buffers

    def new(model, broadcast_buffers=None, forward_sync_buffers=True):
        return model, broadcast_buffers, forward_sync_buffers

    for wrapper, wanted in ((old, ("net", False)), (new, ("net", None, False))):
        monkeypatch.setattr(distributed, "DistributedDataParallel", wrapper)
        assert replicated("net") == wanted

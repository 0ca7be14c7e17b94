"""Runs side by side: the same as alone to the bit, batches made once, each with its own fate."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lcv.errors import ArgumentError, FileError
from lcv.inner_product import INNER_PRODUCTS
from lcv.train import together
from lcv.train.batches import Procedural
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train.distributed import Processes
from lcv.train.log import read_log
from lcv.train.loop import run
from lcv.train.step import Step
from lcv.train.together import _Group, _Lane, run_together, share_lanes
from testing.streams import pretend_cuda


def configs(folder, *products, **changes):
    base = TrainConfig(
        data=DataConfig(recipe="quick", size=(64, 64), ahead=2),
        optim=OptimConfig(lr=1e-4),
        loss=LossConfig("sequence", iters=2),
        steps=4,
        batch=1,
        precision="float32",
        log_every=2,
        save_every=1,
        validate_every=4,
        validate_iters=2,
        validation={"procedural": "procedural"},
    )
    base = replace(base, **changes)
    return [
        replace(base, model=ModelConfig("raft-small", name), folder=str(folder / name))
        for name in products
    ]


@pytest.fixture(autouse=True)
def two_pairs(monkeypatch):
    monkeypatch.setattr("lcv.train.validate.PAIRS", 2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Each product's run on its own: its weights, and its log without what a clock says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lcv.train.validate.PAIRS", 2)
        folder = tmp_path_factory.mktemp("alone")
        return {
            config.model.inner_product: (run(config, device="cpu").state_dict(), logged(config))
            for config in configs(folder, "euclidean", "elliptical")
        }


def logged(config):
    entries = read_log(f"{config.folder}/log.jsonl")
    clocks = ("time", "pairs_per_second")
    return [{k: v for k, v in entry.items() if k not in clocks} for entry in entries]


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_side_by_side_is_as_alone_to_the_bit_and_batches_are_made_once(
    alone, tmp_path, monkeypatch
):
    made = []
    make = Procedural._make
    monkeypatch.setattr(
        Procedural, "_make", lambda self, indices: made.append(indices) or make(self, indices)
    )
    both = configs(tmp_path, "euclidean", "elliptical")
    told = []
    ended = run_together(both, "cpu", pace=lambda step, seconds: told.append(step))
    assert made == [[0, 1], [2, 3]]  # groups of two steps, though two runs meet them
    assert told == [1, 2, 3, 4]  # every step is saved here
    for config, end in zip(both, ended, strict=True):
        weights, log = alone[config.model.inner_product]
        assert (end.steps, end.error) == (4, None)
        assert same(end.model.state_dict(), weights)
        assert logged(config) == log


def test_runs_that_were_stopped_or_are_apart_go_on_to_the_bit(alone, tmp_path):
    both = configs(tmp_path, "euclidean", "elliptical")
    asked = iter([False, True])
    first = run_together(both, "cpu", stop=lambda: next(asked))
    assert [end.steps for end in first] == [1, 1]
    run(both[0], "auto", "cpu", until=3)  # as if killed between their saves
    ended = run_together(both, "cpu")
    for config, end in zip(both, ended, strict=True):
        weights, log = alone[config.model.inner_product]
        assert same(end.model.state_dict(), weights)
        last = logged(config)[-1]
        assert last == log[-1]


def test_one_that_diverges_leaves_the_others_alone(alone, tmp_path, monkeypatch):
    forward = Step._forward

    def diverging(self, batch):
        loss, epe = forward(self, batch)
        wrong = self.config.model.inner_product == "euclidean" and int(self.number) == 2
        return (loss * float("nan") if wrong else loss), epe

    monkeypatch.setattr(Step, "_forward", diverging)
    bad, good = run_together(configs(tmp_path, "euclidean", "elliptical"), "cpu")
    assert "step 2: the loss or its gradient is not finite" in str(bad.error)
    assert (bad.model, bad.steps) == (None, 2)
    assert same(good.model.state_dict(), alone["elliptical"][0])


def test_a_batch_that_cannot_be_had_ends_all_after_a_save(tmp_path, monkeypatch):
    def broken(self, first_step):
        yield from [next(batches(self, first_step))]
        raise FileError("a.png: is cut short")

    batches = Procedural.batches
    monkeypatch.setattr(Procedural, "batches", broken)
    ended = run_together(configs(tmp_path, "euclidean", "diagonal"), "cpu")
    assert [(end.steps, str(end.error)) for end in ended] == [(1, "a.png: is cut short")] * 2
    assert (tmp_path / "diagonal" / "checkpoints" / "last.pt").exists()


def test_one_that_cannot_begin_has_done_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        together, "make_source", lambda *_: SimpleNamespace(batches=lambda _: iter(()))
    )
    (config,) = configs(tmp_path, "diagonal")
    wrong = replace(config, model=replace(config.model, weights=str(tmp_path / "no.pt")))
    (ended,) = run_together([wrong], "cpu")
    assert (ended.model, ended.steps) == (None, 0)
    assert "no.pt" in str(ended.error)


def test_the_pace_is_told_in_seconds_a_step_of_all(tmp_path, monkeypatch):
    """Of runs that take no time: the clock goes on by a second whenever it is looked at."""
    clock, told = [0.0], []

    def look():
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("time.perf_counter", look)
    group = object.__new__(together._Group)
    group.last, group.device, group.ended, group.configs = 5, torch.device("cpu"), {}, [None]
    group.source = SimpleNamespace(batches=lambda step: iter(range(9)))
    position = SimpleNamespace(step=0)

    def take(batch):
        position.step += 1

    group.runs = {
        0: SimpleNamespace(
            position=position,
            begin=lambda: None,
            take=take,
            is_due=lambda last: position.step in (3, 5),
            attend=lambda last: None,
            finish=lambda: None,
            result="net",
        )
    }
    group.lanes = {0: together._Lane(group.device)}
    (ended,) = group.go(lambda: False, lambda step, seconds: told.append((step, seconds)))
    assert told == [(3, 1 / 3), (5, 1 / 2)]
    assert (ended.model, ended.steps, ended.error) == ("net", 5, None)


def test_who_asks_the_solver():
    found = {name: together._solves(INNER_PRODUCTS[name](3)) for name in INNER_PRODUCTS}
    assert {name for name, solves in found.items() if solves} == {
        "elliptical",
        "rotation",
        "riemannian",
    }


def test_several_processes_are_refused(tmp_path, monkeypatch):
    two = Processes(0, 2, torch.device("cpu"))
    monkeypatch.setattr(together, "join", lambda device: two)
    with pytest.raises(ArgumentError, match="side by side share one process; start them without"):
        run_together(configs(tmp_path, "diagonal"), "cpu")


def test_runs_on_other_batches_are_refused(tmp_path):
    one, other = configs(tmp_path, "euclidean", "diagonal")
    with pytest.raises(ArgumentError, match="seed is 0 in one run and 1 in another"):
        run_together([one, replace(other, seed=1)], "cpu")
    with pytest.raises(ArgumentError, match="there is no run"):
        run_together([], "cpu")


@pytest.mark.parametrize(
    ("solving", "places"),
    [
        ([False, False, False, True, False, True], [1, 2, 1, 0, 2, 0]),  # the paper's six
        ([True] * 3, [0, 0, 0]),
        ([False] * 6, [0, 1, 2, 0, 1, 2]),
    ],
)
def test_those_that_solve_share_a_lane_and_the_others_spread(solving, places):
    assert share_lanes(solving, 3) == places


@pytest.mark.gpu
def test_captured_steps_in_lanes_agree_with_eager_ones_alone(tmp_path):
    """In float64, where the order of sums moves a weight by far less than a step does."""
    products = ("euclidean", "free", "diagonal", "rotation", "gram", "elliptical")
    changes = {"precision": "float64", "optim": OptimConfig("sgd", lr=1e-3, schedule="constant")}
    captured = configs(tmp_path / "graph", *products, graph=True, **changes)
    ended = run_together(captured, "cuda")
    for config, end in zip(configs(tmp_path / "alone", *products, **changes), ended, strict=True):
        weights = run(config, device="cuda").state_dict()
        assert end.error is None
        for name, value in weights.items():
            torch.testing.assert_close(end.model.state_dict()[name], value, rtol=1e-9, atol=1e-12)


def test_lanes_are_no_more_than_runs(tmp_path):
    made = []
    real = together._Lane

    class Counted(real):
        def __init__(self, device):
            super().__init__(device)
            made.append(device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "_Lane", Counted)
        run_together(configs(tmp_path, "diagonal", steps=1, validate_every=0), "cpu")
    assert len(made) == 1


def test_steps_of_a_lane_are_taken_on_its_stream(monkeypatch):
    events = pretend_cuda(monkeypatch)
    batch = SimpleNamespace(hold_for=lambda stream: events.append(f"held for {stream.name}"))
    run = SimpleNamespace(take=lambda given: events.append("taken" if given is batch else given))
    lane = _Lane(torch.device("cuda"))
    lane.take(run, batch)
    assert events == ["side waits for main", "side begins", "taken", "side ends", "held for side"]
    events.clear()
    lane.join()
    assert events == ["main waits for side"]
    events.clear()
    lane = _Lane(torch.device("cpu"))
    lane.take(run, batch)
    lane.join()
    assert events == ["taken"]


def test_only_a_gpu_is_waited_for(monkeypatch):
    waited, group = [], object.__new__(_Group)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    for group.device in (torch.device("cpu"), torch.device("cuda", 1)):
        group._wait()
    assert waited == [torch.device("cuda", 1)]

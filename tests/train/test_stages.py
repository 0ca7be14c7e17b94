"""Stages: in one go or one at a time the same to the bit, one decay, and what is left to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError
from lcv.models.cards import Card, save_weights
from lcv.train import (
    LossConfig,
    ModelConfig,
    one_decay,
    run,
    run_stages,
    run_stages_together,
)
from lcv.train.checkpoint import read
from lcv.train.log import read_log
from lcv.train.optim import rate_at
from lcv.train.stages import plan, stages_left


@pytest.fixture
def stages(tiny):
    """stages(**changes): A of 3 steps and B of 2 with more iterations, on one decay."""

    def make(**changes):
        first = tiny(steps=3, ema=0.9, log_every=1, **changes)
        second = replace(first, steps=2, loss=LossConfig(iters=3))
        return one_decay({"A": first, "B": second}, lr=4e-4)

    return make


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_one_command_equals_one_stage_at_a_time_on_other_machines(stages, tmp_path):
    whole = run_stages(stages(), device="cpu").state_dict()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["A", "B"]
    run_stages(stages(folder=str(tmp_path / "here")), only="A", device="cpu")
    left = tmp_path / "here" / "A" / "weights.safetensors"
    there = stages(folder=str(tmp_path / "there"))
    apart = run_stages(there, start=str(left), device="cpu").state_dict()
    assert same(whole, apart)
    assert not (tmp_path / "there" / "A").exists()
    card = json.loads((tmp_path / "there" / "B" / "weights.json").read_text(encoding="utf-8"))
    assert (card["stored_as"], card["progress"]["stage"]) == ("torch.float16", "B")
    # Interrupted anywhere and resumed, it is the same; what is done is left as it is.
    parts = stages(folder=str(tmp_path / "parts"))
    (first, _), *_ = stages_left(parts)
    assert Path(first.folder).name == "A"
    assert run_stages(parts, resume="auto", device="cpu", minutes=0.0) is not None
    resumed = run_stages(parts, resume="auto", device="cpu")
    assert resumed is not None
    assert same(whole, resumed.state_dict())
    assert run_stages(parts, resume="auto", device="cpu") is None


def test_the_rates_of_all_stages_lie_on_one_line(tiny):
    first = tiny(steps=30, optim=replace(tiny().optim, warmup=0.0))
    made = one_decay({"A": first, "B": replace(first, steps=50), "C": first}, lr=4e-4)
    rates = [rate_at(c.optim, step, c.steps) for c in made.values() for step in range(c.steps)]
    assert rates == pytest.approx([4e-4 * (1 - k / 110) for k in range(110)], abs=1e-18)
    assert [c.optim.lr for c in made.values()][1:] == [c.optim.lr_end for c in made.values()][:-1]


def test_a_stage_that_was_stopped_goes_on_elsewhere(stages, tmp_path):
    here = stages(folder=str(tmp_path / "here"))
    begun = replace(here["A"], name="A", folder=str(tmp_path / "here" / "A"))
    run(begun, device="cpu", until=2)
    stopped = str(tmp_path / "here" / "A" / "stopped.safetensors")
    there = stages(folder=str(tmp_path / "there"))
    assert [(c.name, c.first_step) for c in plan(there, stopped)] == [("A", 2), ("B", 0)]
    with pytest.raises(ArgumentError, match=r"stopped.safetensors: lies in the folder of stage A"):
        plan(here, stopped)
    run_stages(there, start=stopped, device="cpu")
    log = read_log(tmp_path / "there" / "A" / "log.jsonl")
    assert [e["step"] for e in log if e["kind"] == "train"] == [3]
    assert "begins after step 2" in log[0]["text"]
    assert read(tmp_path / "there" / "B" / "checkpoints" / "last.pt")["step"] == 2


def test_networks_side_by_side_are_as_alone(stages, tmp_path):
    networks = {
        name: stages(
            model=ModelConfig("raft-small", inner_product=name), folder=str(tmp_path / name)
        )
        for name in ("elliptical", "euclidean")
    }
    run_stages_together(list(networks.values()), "cpu", minutes=0.0)  # stops before the first step
    run_stages_together(list(networks.values()), "cpu")
    alone = run_stages(stages(), device="cpu").state_dict()
    ended = read(tmp_path / "elliptical" / "B" / "checkpoints" / "last.pt")
    assert same(alone, ended["average"])
    assert read(tmp_path / "euclidean" / "B" / "checkpoints" / "last.pt")["step"] == 2
    first = {name: str(tmp_path / name / "A" / "weights.safetensors") for name in networks}
    later = [stages(model=s["A"].model, folder=s["A"].folder + "2") for s in networks.values()]
    run_stages_together(later, "cpu", starts=list(first.values()), only="B")
    again = read(tmp_path / "elliptical2" / "B" / "checkpoints" / "last.pt")
    assert same(ended["average"], again["average"])


def test_what_cannot_be_planned_is_said(stages, tmp_path):
    made = stages()
    with pytest.raises(ArgumentError, match="there is no stage 'C', wanted one of A, B"):
        plan(made, only="C")
    with pytest.raises(
        FileError, match=r"stage B begins with .*A/weights.safetensors, and there is"
    ):
        plan(made, only="B")
    with pytest.raises(ArgumentError, match="which is of one stage"):
        next(stages_left(made, resume="last.pt"))
    unknown, done = tmp_path / "unknown.safetensors", tmp_path / "done.safetensors"
    save_weights(lcv.build("raft-small"), unknown)
    with pytest.raises(ArgumentError, match=r"unknown.safetensors: its card does not tell how far"):
        plan(made, start=str(unknown))
    assert [(c.name, c.first_step) for c in plan(made, str(unknown), "B")] == [("B", 0)]
    card = Card(progress={"stage": "B", "step": 2, "steps": 2})
    save_weights(lcv.build("raft-small"), done, card)
    with pytest.raises(ArgumentError, match="its run is done, so that no stage is left"):
        plan(made, start=str(done))
    (tmp_path / "run" / "B" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "B" / "checkpoints" / "last.pt").touch()
    with pytest.raises(ArgumentError, match="B: holds a run already; resume it"):
        next(stages_left(made))

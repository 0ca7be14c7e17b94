"""Stages: in one go or one at a time the same to the bit, one decay, and what is left to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

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


def test_the_minutes_that_are_left_pass_from_stage_to_stage(stages, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    left = stages_left(stages(), minutes=10.0)
    first, minutes = next(left)
    assert (first.name, first.half, minutes) == ("A", True, 10.0)
    now[0] += 180
    Path(first.folder).mkdir(parents=True)
    (Path(first.folder) / "weights.safetensors").touch()
    second, minutes = next(left)
    assert (second.name, minutes) == ("B", 7.0)
    assert second.model.weights == f"{first.folder}/weights.safetensors"
    assert list(left) == [], "the last one was stopped"
    assert [minutes for _, minutes in stages_left(stages(), resume="auto")] == [None]


def test_side_by_side_they_stop_when_the_minutes_are_over_and_one_that_fails_fails_all(
    stages, monkeypatch
):
    now, asked = [1000.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def together(configs, device, stop):
        told = []
        for passed in (119, 121):
            now[0] = 1000.0 + passed
            told.append(stop())
        asked.append(([config.name for config in configs], device, told))
        return [SimpleNamespace(error=error) for error in failing]

    monkeypatch.setattr("lcv.train.stages.run_together", together)
    networks = [stages(folder=stages()["A"].folder + name) for name in "xy"]
    failing = [None, None]
    run_stages_together(networks, "cpu", minutes=2.0)
    assert asked == [(["A", "A"], "cpu", [False, True])], "B waits for A to be done"
    failing = [None, FileError("no more room")]
    with pytest.raises(FileError, match="no more room"):
        run_stages_together(networks, "cpu")


def test_a_run_of_one_stage_keeps_its_folder_and_goes_on_where_it_was(tiny, tmp_path):
    (alone,) = plan({"": tiny()})
    assert alone == tiny()
    start = tmp_path / "start.safetensors"
    save_weights(
        lcv.build("raft-small"), start, Card(progress={"stage": "", "step": 4, "steps": 6})
    )
    (later,) = plan({"": tiny()}, str(start))
    assert (later.first_step, later.model.weights, later.folder) == (4, str(start), tiny().folder)
    inside = Path(tiny().folder) / "start.safetensors"
    inside.parent.mkdir()
    for path in (start, start.with_suffix(".json")):
        path.rename(inside.parent / path.name)
    with pytest.raises(ArgumentError, match="lies in the folder of stage this run, where it would"):
        plan({"": tiny()}, str(inside))


def test_where_weights_go_on(stages, tmp_path, monkeypatch):
    start = tmp_path / "start.safetensors"
    monkeypatch.setattr("lcv.train.stages.find", Path)
    for progress, only, wanted in (
        ({"stage": "A", "step": 2, "steps": 3}, None, [("A", 2), ("B", 0)]),
        ({"stage": "A", "step": 2, "steps": 3}, "A", [("A", 2)]),
        ({"stage": "A", "step": 2, "steps": 3}, "B", [("B", 0)]),
        ({"stage": "A", "step": 3, "steps": 3}, None, [("B", 0)]),
        ({"stage": "A", "step": 3}, None, [("B", 0)]),
        ({"stage": "A", "step": 2}, None, [("A", 2), ("B", 0)]),
        ({"stage": "B", "step": 1, "steps": 2}, None, [("B", 1)]),
        ({"stage": "A", "step": None, "steps": 3}, "B", [("B", 0)]),
        ({"stage": "C", "step": 1, "steps": 3}, "B", [("B", 0)]),
    ):
        card = Card(progress=progress)
        monkeypatch.setattr("lcv.train.stages.card_from", lambda *_, card=card: card)
        found = plan(stages(), str(start), only)
        assert [(config.name, config.first_step) for config in found] == wanted
        assert found[0].model.weights == str(start)


def test_a_run_of_one_stage_that_is_done_is_looked_at_again(tiny):
    """By itself it says whether more steps are wanted; among others a stage that is done is left."""
    Path(tiny().folder).mkdir()
    (Path(tiny().folder) / "weights.safetensors").touch()
    assert len(list(stages_left({"": tiny()}, resume="auto"))) == 1
    assert len(list(stages_left({"": tiny()}, resume="last.pt"))) == 1

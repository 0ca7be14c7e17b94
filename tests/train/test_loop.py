"""A run: the same weights whether in one go or resumed, at any split; failures named."""

from __future__ import annotations

import json
import math
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lcv.errors import ArgumentError, FileError
from lcv.inner_product import InnerProduct
from lcv.models.cards import save_weights
from lcv.train import LossConfig, ModelConfig, OptimConfig, run
from lcv.train.batches import Procedural
from lcv.train.checkpoint import Position, read
from lcv.train.distributed import Processes
from lcv.train.log import read_log
from lcv.train.loop import NotFinite, Run
from lcv.train.step import NEVER


def same(one, other):
    first, second = one.state_dict(), other.state_dict()
    return all(torch.equal(first[name], second[name]) for name in first)


def test_a_resumed_run_equals_an_uninterrupted_one_to_the_bit(tiny, tmp_path):
    whole = run(tiny(), device="cpu")
    config = tiny(folder=str(tmp_path / "parts"))
    for until in (1, 3, 4):
        run(config, resume="auto", device="cpu", until=until)
    assert same(run(config, resume="auto", device="cpu"), whole)
    # A finished run is left as it is.
    assert same(run(config, resume="auto", device="cpu"), whole)
    steps = [e["step"] for e in read_log(tmp_path / "parts" / "log.jsonl") if e["kind"] == "train"]
    assert steps == sorted(set(steps))


def test_a_run_that_begins_later_meets_the_pairs_and_rates_of_its_steps(tiny, tmp_path):
    """From exact weights and without momentum it is the same run; moments would begin anew."""
    optim = OptimConfig("sgd", lr=1e-3, schedule="linear", warmup=0.0)
    config = tiny(optim=optim, half=True)
    whole = run(config, device="cpu", until=3)
    save_weights(whole, tmp_path / "start.safetensors")
    model = replace(config.model, weights=str(tmp_path / "start.safetensors"))
    later = replace(config, model=model, first_step=3, folder=str(tmp_path / "later"))
    begun = run(later, device="cpu", until=4)
    assert same(begun, run(config, resume="auto", device="cpu", until=4))
    ended = run(later, resume="auto", device="cpu")
    assert same(ended, run(config, resume="auto", device="cpu"))
    with pytest.raises(ArgumentError, match="first_step is 7, wanted from 0 to the 6 steps"):
        replace(config, first_step=7)


def test_a_limit_of_time_stops_and_saves(tiny, tmp_path):
    run(tiny(), device="cpu", minutes=0.0)
    assert read(tmp_path / "run" / "checkpoints" / "last.pt")["step"] == 0
    assert (tmp_path / "run" / "stopped.safetensors").exists()
    run(tiny(), resume="auto", device="cpu", minutes=10.0)
    assert sorted(p.name for p in (tmp_path / "run").glob("*.safetensors")) == [
        "weights.safetensors"
    ]


def test_a_run_has_the_minutes_it_is_given_and_is_left_in_good_order(tiny, monkeypatch):
    done = []

    class Told:
        def __init__(self, *given) -> None:
            self.step = SimpleNamespace(let_go=lambda: done.append("let go"))
            done.append(given[2:])

        def go(self, until, deadline):
            done.append((until, deadline))
            return "the network"

    monkeypatch.setattr("lcv.train.loop.Run", Told)
    monkeypatch.setattr("lcv.train.loop.leave", lambda: done.append("left"))
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    assert run(tiny(), "auto", "cpu", (print,), until=3, minutes=2.0) == "the network"
    assert done == [("auto", (print,)), (3, 1120.0), "let go", "left"]
    done.clear()
    run(tiny(), device="cpu")
    assert done[1] == (None, math.inf)
    done.clear()
    with pytest.raises(ArgumentError, match="graph is True"):
        run(tiny(graph=True), device="cpu")
    assert done == ["left"]


def test_what_is_due_after_which_step(tiny):
    bare = object.__new__(Run)
    for every, wanted in ((3, [2, 3, 4, 5, 6, 7, 8]), (0, [2, 4, 5, 6, 7, 8])):
        bare.config = tiny(steps=9, log_every=2, save_every=5, validate_every=every)
        due = []
        for step in range(1, 9):
            bare.position = Position(step)
            due += [step] * bare.is_due(7)
        assert due == wanted


def test_what_is_attended_to_after_which_step(tiny, monkeypatch):
    """The last step is reported but not saved: the run does that when it ends."""
    now = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    config = tiny(steps=9, log_every=4, save_every=3, validate_every=2)
    bare = object.__new__(Run)
    bare.config = config
    for word in ("_report", "_validate", "save"):
        monkeypatch.setattr(bare, word, lambda word=word: done.append(word), raising=False)
    found = {}
    for step in range(1, 8):
        done = []
        bare.position = Position(step)
        bare.begin()
        bare.attend(7)
        found[step] = done
    assert found == {
        1: [],
        2: ["_validate"],
        3: ["save"],
        4: ["_report", "_validate"],
        5: [],
        6: ["_validate", "save"],
        7: ["_report"],
    }
    assert bare._since == 7


def test_the_clock_stands_while_a_run_is_looked_at(tiny, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    bare = object.__new__(Run)
    bare.config, bare.position = tiny(log_every=10, validate_every=3, save_every=3), Position(2)
    bare.begin()
    clock[0] += 5.0  # a step
    bare.position.step += 1

    def takes_long():
        clock[0] += 50.0

    bare._validate = bare.save = takes_long
    bare.attend(9)
    assert (bare._since, clock[0] - bare._began) == (2, 5.0)


def test_speed_and_rate_in_the_log_are_of_the_steps_since_the_last_line(tiny, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    bare = object.__new__(Run)
    optim = OptimConfig(lr=1.0, schedule="steps", drops=(4, 5))
    bare.config, bare.position = tiny(optim=optim, batch=6), Position(2)
    bare.processes = Processes(0, 1, torch.device("cpu"))
    bare.step = SimpleNamespace(read=lambda: {"loss": 7.0}, failed_at=NEVER)
    bare.model, written = torch.nn.Module(), []
    bare.log = SimpleNamespace(write=lambda *words, **values: written.append((words, values)))
    bare.begin()
    clock[0] += 4.0
    bare.position.step = 5
    bare._report()
    assert written == [(("train", 5), {"loss": 7.0, "pairs_per_second": 4.5, "lr": 0.5})]
    bare.processes = Processes(1, 2, torch.device("cpu"))
    bare._report()
    assert len(written) == 1, "the first process writes for all"
    bare.processes = Processes(0, 1, torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3 * 2**29)
    bare._report()
    assert written[1][1]["memory_gib"] == 1.5


def test_at_the_end_there_is_a_validation_where_none_was_due(tiny, monkeypatch):
    for steps, until, every, wanted in (
        (5, 5, 2, ["_validate", "save", True]),
        (4, 4, 2, ["save", True]),
        (5, 4, 3, ["save", False]),
        (5, 5, 0, ["save", True]),
    ):
        done = []
        bare = object.__new__(Run)
        bare.config, bare.position = tiny(steps=steps, validate_every=every), Position(until)
        bare.processes = Processes(0, 1, torch.device("cpu"))
        bare.step = SimpleNamespace(failed_at=NEVER)
        for word in ("_validate", "save"):
            setattr(bare, word, lambda word=word, done=done: done.append(word))
        bare._write_weights = done.append
        bare.finish()
        assert done == wanted


def test_a_file_that_cannot_be_read_ends_the_run_but_what_was_learned_is_saved():
    def broken():
        yield 1
        raise FileError("a.png: is cut short")

    bare, saved, batches = object.__new__(Run), [], broken()
    bare.save = lambda: saved.append(True)
    assert bare._next(batches) == 1
    assert saved == []
    with pytest.raises(FileError, match=r"a\.png: is cut short"):
        bare._next(batches)
    assert saved == [True]


def test_a_ctrl_c_in_the_last_step_is_not_lost(tiny, capfd):
    def press(entry):
        if entry["step"] == 6:
            os.kill(os.getpid(), signal.SIGINT)

    config = tiny()
    with pytest.raises(KeyboardInterrupt):
        run(config, listeners=(press,))
    assert "stopping as soon as all is saved" in capfd.readouterr().err
    assert (Path(config.folder) / "weights.safetensors").exists()


def test_resume_from_a_named_checkpoint(tiny, tmp_path):
    whole = run(tiny(keep_every=2), device="cpu")
    kept = tmp_path / "run" / "checkpoints" / "step-2.pt"
    assert read(kept)["step"] == 2
    other = replace(tiny(), folder=str(tmp_path / "other"))
    assert same(run(other, resume=str(kept), device="cpu"), whole)


@pytest.mark.parametrize("kind", ["elliptical", "riemannian", "euclidean"])
def test_other_kinds_of_w_resume_too(tiny, tmp_path, kind):
    config = tiny(model=ModelConfig("raft-small", kind), steps=4)
    whole = run(config, device="cpu")
    parts = replace(config, folder=str(tmp_path / "parts"))
    run(parts, device="cpu", until=3)
    assert same(run(parts, resume="auto", device="cpu"), whole)


def test_parts_of_a_batch_add_up_to_the_batch(tiny, tmp_path):
    """Plain descent without clipping, which would hide gradients that are twice too long."""
    plain = OptimConfig("sgd", lr=1e-4, clip=math.inf)
    config = tiny(precision="float64", steps=2, batch=4, optim=plain)
    whole = run(config, device="cpu")
    parts = run(replace(config, accumulate=2, folder=str(tmp_path / "parts")), device="cpu")
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(parts.state_dict()[name], value, atol=1e-9, rtol=1e-9)


def test_batches_do_not_depend_on_how_many_are_made_ahead(tiny, tmp_path):
    config = tiny(steps=3)
    whole = run(config, device="cpu")
    data = replace(config.data, ahead=3)
    other = run(replace(config, data=data, folder=str(tmp_path / "other")), device="cpu")
    assert same(whole, other)


def test_what_is_left_behind(tiny, tmp_path):
    run(tiny(steps=2), device="cpu")
    folder = tmp_path / "run"
    assert sorted(p.name for p in folder.iterdir()) == [
        "checkpoints",
        "config.json",
        "log.jsonl",
        "weights.json",
        "weights.safetensors",
    ]
    assert json.loads((folder / "config.json").read_text())["model"]["name"] == "raft-small"
    assert sorted(p.name for p in (folder / "checkpoints").iterdir()) == ["last.pt"]
    entry = read_log(folder / "log.jsonl")[0]
    assert {"loss", "epe", "pairs_per_second", "lr", "w_distance", "p_angle"} <= set(entry)


def test_a_folder_with_a_run_is_not_begun_anew_unasked(tiny):
    run(tiny(steps=1), device="cpu")
    with pytest.raises(ArgumentError, match="holds a run already; resume it"):
        run(tiny(steps=1), device="cpu")


def test_a_checkpoint_of_another_run_begins_none_in_a_folder_that_holds_one(tiny, tmp_path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    for folder in (one, two):
        run(tiny(steps=1, folder=folder), device="cpu")
    before = {p: p.read_bytes() for p in Path(two).rglob("*") if p.is_file()}
    other = f"{one}/checkpoints/last.pt"
    with pytest.raises(ArgumentError, match=r"two: holds a run already, and .*last\.pt is none of"):
        run(tiny(steps=2, folder=two), device="cpu", resume=other)
    assert {p: p.read_bytes() for p in Path(two).rglob("*") if p.is_file()} == before
    run(tiny(steps=2, folder=two), device="cpu", resume=f"{two}/checkpoints/last.pt")
    run(tiny(steps=2, folder=str(tmp_path / "three")), device="cpu", resume=other)


def test_w_waits_until_its_step_and_can_be_trained_alone(tiny, tmp_path):
    waits = OptimConfig(lr=1e-3, schedule="constant", w_from_step=2)
    run(tiny(steps=3, log_every=1, optim=waits), device="cpu")
    entries = read_log(tmp_path / "run" / "log.jsonl")
    far = {each["step"]: each["w_distance"] for each in entries if "w_distance" in each}
    assert (far[1], far[2]) == (0, 0)
    assert far[3] > 0

    config = tiny(steps=2, optim=OptimConfig(lr=1e-3, w_alone=True), folder=str(tmp_path / "alone"))
    torch.manual_seed(config.seed)
    from lcv.train.network import make_model

    start = make_model(config)[0].state_dict()
    alone = run(config, device="cpu").state_dict()
    moved = {name for name in start if not torch.equal(start[name], alone[name])}
    assert moved == {"inner_product.t", "inner_product.S_upper"}
    with pytest.raises(ArgumentError, match="w_alone: the model's inner product has no parameters"):
        run(
            tiny(
                model=ModelConfig("raft-small", "euclidean"),
                optim=OptimConfig(w_alone=True),
                folder=str(tmp_path / "none"),
            ),
            device="cpu",
        )


def test_p_stays_a_rotation(tiny):
    model = run(tiny(optim=OptimConfig(lr=5e-3, w_lr_factor=10.0)), device="cpu")
    P = model.inner_product.rotation()
    torch.testing.assert_close(P.mT @ P, torch.eye(len(P)), atol=1e-5, rtol=0)
    assert (model.inner_product.eigenvalues() > 0).all()
    assert (model.inner_product.matrix() - torch.eye(len(P))).abs().max() > 1e-3


class Poisoned(Procedural):
    """One sample of the run has a hole of NaN in its second frame."""

    index = 5

    def _make(self, indices):
        batch = super()._make(indices)
        for position, index in enumerate(indices):
            if index == self.index:
                batch.image2[position, 1, 3, 4] = torch.nan
        return batch


def test_a_sample_with_nan_is_named_and_can_be_left_out(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("lcv.train.batches.Procedural", Poisoned)
    config = tiny(steps=6, log_every=100, save_every=100)
    with pytest.raises(NotFinite, match=r"step 2: .* Samples: procedural:quick:0:5\. The weights"):
        run(config, device="cpu")
    # What is saved are the weights before that step.
    saved = read(tmp_path / "run" / "checkpoints" / "last.pt")
    assert saved["step"] == 2
    assert all(torch.isfinite(v).all() for v in saved["model"].values())
    failure = read_log(tmp_path / "run" / "log.jsonl")[-1]
    said = {"kind": "failure", "step": 2, "samples": ["procedural:quick:0:5"]}
    assert said.items() <= failure.items()

    data = replace(config.data, exclude=("procedural:quick:0:5",))
    model = run(replace(config, data=data), resume="auto", device="cpu")
    assert all(torch.isfinite(v).all() for v in model.state_dict().values())
    assert read(tmp_path / "run" / "checkpoints" / "last.pt")["step"] == 6


def test_a_step_that_is_not_finite_is_found_before_its_numbers_are_logged(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr("lcv.train.batches.Procedural", Poisoned)
    with pytest.raises(NotFinite, match="step 2: "):
        run(tiny(steps=4, log_every=1, save_every=100), device="cpu")
    entries = read_log(tmp_path / "run" / "log.jsonl")
    assert [entry["step"] for entry in entries if entry["kind"] == "train"] == [1, 2]


def test_each_sample_is_looked_at_alone_with_what_was_drawn_for_its_step():
    """One has a loss, another a gradient that is not finite; a sound one comes after each."""
    bare, weight = object.__new__(Run), torch.nn.Parameter(torch.ones(()))
    number, seen, alone = torch.tensor(9), [], []

    @contextmanager
    def apart():
        alone.append(True)
        yield

    def forward(batch):
        seen.append(int(number))
        return batch(weight), None

    def zero_grad():
        weight.grad = None

    samples = {
        "sound": lambda w: 2 * w,
        "endless": lambda w: w / 0,
        "sound too": lambda w: 3 * w,
        "steep": lambda w: (w - 1).sqrt(),
        "sound as well": lambda w: w,
    }
    bare.processes = Processes(0, 1, torch.device("cpu"))
    bare.step = SimpleNamespace(number=number, alone=apart, _forward=forward)
    bare.source = SimpleNamespace(one_by_one=lambda step: samples.items())
    bare.optimisers = SimpleNamespace(zero_grad=zero_grad, parameters=[weight])
    assert bare._find_guilty(4) == ["endless", "steep"]
    assert seen == [4] * 5
    assert len(alone) == 5, "no gradient is shared with other processes"


def test_a_disk_that_is_full_leaves_the_last_checkpoint_intact(tiny, tmp_path, monkeypatch):
    config = tiny()
    run(config, device="cpu", until=2)
    before = (tmp_path / "run" / "checkpoints" / "last.pt").read_bytes()

    def full(content, file):
        file.write(b"x" * 1000)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(FileError, match=r"last\.pt: saving failed .* before it is intact"):
            run(config, resume="auto", device="cpu")
    assert (tmp_path / "run" / "checkpoints" / "last.pt").read_bytes() == before
    assert same(
        run(config, resume="auto", device="cpu"),
        run(tiny(folder=str(tmp_path / "w")), device="cpu"),
    )


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tiny, tmp_path):
    config = tiny()
    run(config, device="cpu", until=5)
    last = tmp_path / "run" / "checkpoints" / "last.pt"
    last.write_bytes(last.read_bytes()[:-100])
    whole = run(tiny(folder=str(tmp_path / "whole")), device="cpu")
    assert same(run(config, resume="auto", device="cpu"), whole)


def test_validation_chooses_the_best(tiny, tmp_path):
    config = tiny(
        steps=4, validate_every=2, validate_iters=1, validation={"procedural": "procedural"}
    )
    run(config, device="cpu")
    entries = [e for e in read_log(tmp_path / "run" / "log.jsonl") if e["kind"] == "validation"]
    assert [e["step"] for e in entries] == [2, 4]
    assert {"procedural/epe", "procedural/px1", "procedural/fl"} <= set(entries[0])
    best = min(e["procedural/epe"] for e in entries)
    assert math.isclose(read(tmp_path / "run" / "checkpoints" / "best.pt")["best"], best)


def test_frozen_norms_keep_their_statistics(tiny):
    model = ModelConfig("raft-large", freeze_batch_norm=True)
    trained = run(
        tiny(
            model=model,
            steps=1,
            validate_every=1,
            validate_iters=1,
            validation={"procedural": "procedural"},
        ),
        device="cpu",
    )
    assert torch.equal(trained.cnet.norm1.running_mean, torch.zeros(64))
    assert not trained.cnet.norm1.training
    assert trained.cnet.training


def test_vcn_trains_by_the_same_path(tiny):
    from lcv.train import DataConfig

    config = tiny(
        model=ModelConfig("vcn-small", options={"heads": True}),
        data=DataConfig(recipe="quick", size=(128, 128), ahead=1),
        loss=LossConfig("multiscale", iters=None),
        steps=2,
    )
    model = run(config, device="cpu")
    assert all(isinstance(p, InnerProduct) for p in model.inner_products.values())
    assert all(torch.isfinite(v).all() for v in model.state_dict().values())


def test_what_cannot_be_configured_is_said(tiny):
    with pytest.raises(
        ArgumentError, match=r"optim\.schedule is 'cosine', wanted one of one_cycle"
    ):
        tiny(optim=OptimConfig(schedule="cosine"))
    with pytest.raises(ArgumentError, match="steps is 0, wanted at least 1"):
        tiny(steps=0)
    with pytest.raises(ArgumentError, match="accumulate is 3, which does not divide"):
        run(tiny(accumulate=3), device="cpu")
    with pytest.raises(ArgumentError, match=r"data\.recipe is 'fast', wanted one of training"):
        run(
            tiny(data=replace(tiny().data, recipe="fast"), folder=tiny().folder + "2"), device="cpu"
        )

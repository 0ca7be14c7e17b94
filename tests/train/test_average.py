"""The average of the weights: by hand, skipped updates, and what a run makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError
from lcv.train import run
from lcv.train.average import Average
from lcv.train.checkpoint import read

GO, SKIP = torch.zeros(()), torch.ones(())


def test_by_hand():
    model = nn.BatchNorm1d(1)
    average = Average(model, decay=0.75)
    own = average.model
    expected = 1.0
    for step, value in enumerate([3.0, -1.0, 5.0] + [2.0] * 30):
        with torch.no_grad():
            model.weight.fill_(value)
            model.running_var.fill_(value)
            model.num_batches_tracked.fill_(step)
        average.set_share(step)
        average.update(GO)
        d = min(0.75, (1 + step) / (10 + step))
        expected = d * expected + (1 - d) * value
        torch.testing.assert_close(own.weight, torch.tensor([expected]))
        torch.testing.assert_close(own.running_var, torch.tensor([expected]))
        assert own.num_batches_tracked == step
    before = own.weight.clone()
    model.weight.data.fill_(100.0)
    average.update(SKIP)
    assert torch.equal(own.weight, before)
    assert not own.weight.requires_grad


def test_weights_that_stay_are_their_own_average():
    model = lcv.build("raft-large", inner_product="elliptical")
    average = Average(model, 0.999)
    average.set_share(7)
    average.update(GO)
    for own, new in zip(average.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(own, new)


def test_a_rotation_that_is_learned_as_one_has_no_average():
    with pytest.raises(ArgumentError, match="mean of rotations is no rotation"):
        Average(lcv.build("raft-small", inner_product="riemannian"), 0.999)


def test_a_run_keeps_the_average_and_resumes_to_the_bit(tiny, tmp_path):
    plain = run(tiny(folder=str(tmp_path / "plain")), device="cpu").state_dict()
    config = tiny(ema=0.9)
    whole = run(config, device="cpu").state_dict()
    last = read(tmp_path / "run" / "checkpoints" / "last.pt")
    # Averaging changes nothing of what is learned, and is what the run returns and writes.
    assert all(torch.equal(last["model"][name], value) for name, value in plain.items())
    assert any(not torch.equal(whole[name], value) for name, value in plain.items())
    for file, state in (("weights", whole), ("last-step", plain)):
        written = lcv.load("raft-small", tmp_path / "run" / f"{file}.safetensors").state_dict()
        assert all(torch.equal(written[name], value) for name, value in state.items())

    parts = replace(config, folder=str(tmp_path / "parts"))
    for until in (1, 3, 4, None):
        resumed = run(parts, resume="auto", device="cpu", until=until).state_dict()
    assert all(torch.equal(resumed[name], value) for name, value in whole.items())

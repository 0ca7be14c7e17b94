"""The network of a run: which losses it can have, where its weights begin, what it leaves out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError
from lcv.models.cards import save_weights
from lcv.train import LossConfig, ModelConfig
from lcv.train.network import freeze_batch_norm, make_model, settled


def test_a_loss_that_a_network_cannot_have_names_those_it_can(tiny):
    config = tiny(loss=LossConfig("multiscale"))
    with pytest.raises(
        ArgumentError, match=r"loss\.name is 'multiscale', but raft-small can be trained with sequ"
    ):
        make_model(config)


def test_a_network_without_parameters_cannot_be_trained(tiny, monkeypatch):
    frozen = lcv.build("raft-small").requires_grad_(False)
    monkeypatch.setattr("lcv.train.network.build", lambda *_, **__: frozen)
    with pytest.raises(ArgumentError, match=r"model\.name: raft-small has no parameters, so there"):
        make_model(tiny())
    frozen.inner_product.t.requires_grad_(True)
    assert make_model(tiny()) == (frozen, [])


def test_weights_are_filled_in_and_what_there_is_to_say_is_said(tiny, tmp_path):
    begun = lcv.build("raft-small", inner_product="euclidean")
    save_weights(begun, tmp_path / "begun.safetensors")
    weights = str(tmp_path / "begun.safetensors")
    model, notes = make_model(tiny(model=ModelConfig("raft-small", weights=weights)))
    assert torch.equal(model.fnet.conv1.weight, begun.fnet.conv1.weight)
    assert ["no W in the file" in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("name", "iters", "validate_iters", "left_out"),
    [
        ("raft-small", 3, 4, False),
        ("ddflow", None, None, False),
        ("ddflow", 3, None, True),
        ("ddflow", None, 4, True),
    ],
)
def test_iterations_are_left_out_where_there_are_none(tiny, name, iters, validate_iters, left_out):
    config = tiny(
        model=ModelConfig(name), loss=LossConfig(iters=iters), validate_iters=validate_iters
    )
    found, notes = settled(config, lcv.build(name))
    wanted = (None, None) if left_out else (iters, validate_iters)
    assert (found.loss.iters, found.validate_iters) == wanted
    note = "ddflow does not iterate: loss.iters and validate_iters are left out"
    assert notes == [note] * left_out
    assert found.model == config.model, "only a factory's network has a source"


def test_norms_are_frozen_and_nothing_else():
    model = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.Sequential(nn.BatchNorm1d(1)))
    freeze_batch_norm(model.train())
    assert [module.training for module in model.modules()] == [True, True, False, True, False]
    assert all(parameter.requires_grad for parameter in model.parameters())

"""The columns: the paper's seven and ours, and what each changes in a run."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

import lcv
from lcv.errors import ArgumentError
from lcv.inner_product import INNER_PRODUCTS, make_inner_product
from lcv.models.registry import NETWORKS, check_options
from lcv.models.types import Defaults, FlowOutput
from lcv.studies.ablation_base import network_for, procedural_base
from lcv.studies.columns import (
    BY_NAME,
    COLUMNS,
    PAPER,
    choose,
    config_for,
    form_of,
)
from lcv.studies.null_controls import null_controls
from lcv.train.config import ModelConfig
from testing.networks import Stub
from testing.toy import Toy

MODELS = ("raft-small", "raft-large", "vcn", "vcn-small", "ddflow")


def test_the_paper_has_seven_in_its_order():
    assert [BY_NAME[name].label for name in PAPER] == [
        "original",
        "continued",
        "free W",
        "Λ only",
        "P only",
        "1×1 convolution",
        "full LCV",
    ]
    assert len(BY_NAME) == len(COLUMNS)
    assert {column.inner_product for column in COLUMNS} == set(INNER_PRODUCTS)


@pytest.mark.parametrize("model", MODELS)
def test_every_column_can_be_built_in_every_network_and_none_comes_twice(model):
    network = network_for(ModelConfig(model))
    columns = choose(network, ["all"])
    assert set(PAPER) < {column.name for column in columns}
    default = inspect.signature(NETWORKS[model].builder).parameters["form"].default
    built = []
    for column in columns:
        config = config_for(column, procedural_base(model, None), 0, Path("x"))
        check_options(model, config.model.options)
        form = form_of(network, column)
        assert form == config.model.options.get("form", default)
        assert make_inner_product(config.model.inner_product, 4, form).form == form
        if column.trained:
            built.append((config.model.inner_product, form, config.optim))
    # `left` against `factor`: one of them is the full LCV already.
    forms = {"lcv-left", "lcv-factor"} & {column.name for column in columns}
    assert forms == {"lcv-left" if model.startswith("vcn") else "lcv-factor"}
    assert all(built.count(each) == 1 for each in built)


def test_the_null_control_is_p_only_unless_p_acts_on_channels_kept_apart():
    left = replace(BY_NAME["rotation"], name="left", options={"form": "left"})
    for model in ("raft-small", "ddflow"):
        found = null_controls(ModelConfig(model), COLUMNS)
        assert found == ("rotation", "rotation-factor")
    assert null_controls(ModelConfig("vcn-small"), (*COLUMNS, left)) == ("left",)


def test_a_column_changes_what_it_says_and_nothing_else():
    base = replace(procedural_base("raft-small", "w.pth"), steps=1000, graph=True)
    base = replace(base, optim=replace(base.optim, w_from_step=77))
    for column in COLUMNS:
        config = config_for(column, base, 5, Path("f"))
        assert (config.seed, config.folder, config.model.weights) == (5, "f", "w.pth")
        assert config.optim.w_from_step == (500 if column.name == "lcv-delayed" else 0)
        assert config.optim.w_alone == (column.name == "w-alone")
        assert config.graph == (column.name != "riemannian")
        same = replace(
            config,
            model=base.model,
            optim=base.optim,
            graph=True,
            seed=base.seed,
            folder=base.folder,
        )
        assert same == base


def test_names_are_checked_and_continued_is_always_there():
    network = network_for(ModelConfig("raft-small"))
    assert [c.name for c in choose(network, ["lcv", "free"])] == ["continued", "free", "lcv"]
    assert "lcv-left" in [c.name for c in choose(network, ["lcv-left"])]
    with pytest.raises(
        ArgumentError, match="no column 'rotatoin' .did you mean rotation.*; there are"
    ):
        choose(network, ["rotatoin"])
    with pytest.raises(
        ArgumentError, match=r"no column 'lcv-lef' .did you mean lcv-left or \S+\?\);"
    ):
        choose(network, ["lcv-lef"])  # two names at most
    with pytest.raises(ArgumentError, match="no column 'x'; there are original, continued"):
        choose(network, ["x"])


def test_a_column_that_cannot_be_attached_is_refused_by_name():
    network = lcv.wrap(Toy(), multiple=4, after="encoder")
    names = [column.name for column in choose(network, ["all"])]
    assert "free" not in names
    assert "lcv-left" not in names
    with pytest.raises(ArgumentError, match="'free' is not possible here: its W enters as 'left'"):
        choose(network, ["free"])


FROM_ZERO = """
import lcv
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, summed):
        super().__init__()
        self.summed = summed
        self.encoder = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Conv2d(1 if summed else 8, 2, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, image1, image2):
        cost = self.encoder(image1) * self.encoder(image2)
        return self.head(cost.sum(1, keepdim=True) if self.summed else 1e-3 * cost)

def summed():
    return lcv.wrap(Net(True), after="encoder", range=(-1, 1))

def apart():
    return lcv.wrap(Net(False), after="encoder", range=(-1, 1))
"""


def test_a_network_that_starts_at_zero_flow_hides_nothing(tmp_path):
    """The head of one sees the sum over channels, which no rotation changes; the other's does not."""
    (tmp_path / "nets.py").write_text(FROM_ZERO)
    found = {
        name: null_controls(ModelConfig(f"{tmp_path}/nets.py:{name}"), COLUMNS)
        for name in ("summed", "apart")
    }
    assert found == {"summed": ("rotation", "rotation-factor"), "apart": ()}


class Noting(Stub):
    """Remembers what it was called with; its flow is a picture weighed by its parameter."""

    least_side = 1
    defaults = Defaults(iters=12)
    calls: ClassVar[list] = []

    def __init__(self, least):
        super().__init__()
        self.least_side = least
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, image1, image2, **options):
        Noting.calls.append((image1, image2, options, self.weight.item(), self.training))
        return FlowOutput(self.weight * image1[:, :2])


@pytest.mark.parametrize(("least", "side"), [(1, 128), (200, 200)])
def test_a_null_control_is_measured_on_a_small_pair_in_float64(monkeypatch, least, side):
    """Two calls of two iterations on one random pair, which no random numbers of others change."""
    built = []

    def built_for(name, kind, **options):
        built.append((name, kind, options))
        return Noting(least)

    monkeypatch.setattr("lcv.studies.null_controls.build", built_for)
    monkeypatch.setattr("lcv.studies.null_controls.w_parameters", lambda network: [])
    Noting.calls.clear()
    for seed in (3, 4):
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        config = ModelConfig("some", options={"md": 4, "form": "left"})
        found = null_controls(config, (BY_NAME["rotation-factor"], BY_NAME["lcv"]))
        assert found == ("rotation-factor",)
        assert torch.equal(torch.get_rng_state(), state)
    assert built == [("some", "rotation", {"md": 4, "form": "factor"})] * 2
    assert len(Noting.calls) == 4
    first = Noting.calls[0]
    for image1, image2, options, weight, training in Noting.calls:
        assert image1.shape == image2.shape == (1, 3, side, side)
        assert image1.dtype == torch.float64
        assert torch.equal(image1, first[0])
        assert not torch.equal(image1, image2)
        assert 254 < image1.max() < 255
        assert options == {"iters": 2}
        assert weight == first[3]
        assert 0 < abs(weight) < 0.1  # moved a little, away from zero
        assert not training

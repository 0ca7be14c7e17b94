"""torch.hub finds the networks in a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lcv
from lcv.usercode import import_file

REPOSITORY = Path(__file__).resolve().parents[1]


def test_hub_gives_the_embedded_weights():
    model = torch.hub.load(str(REPOSITORY), "raft_small", source="local", pretrained=True)
    expected = lcv.load("raft-small").state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert not model.training


def test_hub_gives_every_network_with_random_weights():
    own = vars(import_file(REPOSITORY / "hubconf.py"))
    names = [name for name, each in own.items() if callable(each) and name[0].islower()]
    assert {name.replace("_", "-") for name in names} == set(lcv.models.build.NETWORKS)
    for name in names:
        with torch.device("meta"):
            model = torch.hub.load(str(REPOSITORY), name, source="local", inner_product="euclidean")
        assert model.spec.name == name.replace("_", "-")
        assert model.spec.inner_product == "euclidean"


def test_weights_that_do_not_come_with_the_package_are_asked_for():
    with pytest.raises(lcv.LcvError, match="ddflow: no weights of this network come with"):
        torch.hub.load(str(REPOSITORY), "ddflow", source="local", pretrained=True)

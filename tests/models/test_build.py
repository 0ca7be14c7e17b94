"""Networks by name and by the weights that a user gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError, WeightsError
from lcv.models.archive import Checkpoint
from lcv.models.build import Spec, fill_from, found_in, source_notes, spec_of
from lcv.models.factory import Factory
from lcv.models.weights import Found


def test_a_network_of_elsewhere_has_no_spec():
    with pytest.raises(ArgumentError, match=r"this Linear was not made by lcv\.build or lcv\.load"):
        spec_of(nn.Linear(1, 1))


def test_a_network_is_filled_from_a_file_of_its_own_kind(tmp_path):
    model, other = (lcv.build("raft-small", "euclidean") for _ in range(2))
    with torch.no_grad():
        other.fnet.conv2.bias.fill_(3.0)
    own = Checkpoint(tmp_path / "a.pth", "torch", other.state_dict())
    fill_from(model, own)
    assert (model.fnet.conv2.bias == 3).all()
    assert found_in(own).name == "raft-small"
    with pytest.raises(WeightsError, match="weights of raft-small, wanted those of raft-large"):
        fill_from(lcv.build("raft-large", "euclidean"), own)


def test_a_factorys_network_is_filled_by_its_own_names(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Conv2d(6, 2, 1)

        def forward(self, image1, image2):
            return self.head(torch.cat([image1, image2], 1))

    model = lcv.wrap(Net(), range=(0, 1), least=8)
    model.spec = Spec("mine.py:net", "euclidean", {})
    state = {name: value + 1 for name, value in model.state_dict().items()}
    wanted = {name: value.clone() for name, value in state.items()}
    fill_from(model, Checkpoint(tmp_path / "a.pth", "torch", state))
    assert all(torch.equal(value, wanted[name]) for name, value in model.state_dict().items())


def test_another_version_of_a_factorys_source_is_told():
    factory = Factory("net.py:net", Spec, None, "1" * 64)
    assert source_notes(factory, None) == []
    for source, told in ((None, False), ("1" * 64, False), ("2" * 64, True)):
        notes = source_notes(factory, Found("net.py:net", None, None, {}, source))
        words = ["the source of net.py:net has changed since these weights were saved"]
        assert notes == (words if told else [])

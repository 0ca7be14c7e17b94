"""The public check: our networks pass it, and each way to break the contract is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import lcv
from lcv.models.types import MEMBERS
from lcv.testing import CHECKS, check_flow_model
from testing.toy import Toy


@pytest.mark.parametrize("name", ["raft-small", "vcn-small", "ddflow"])
def test_our_networks_fulfil_it(name):
    torch.manual_seed(0)
    model = lcv.build(name)
    if model.defaults.iters is not None:
        model.defaults = replace(model.defaults, iters=2, training_iters=2)  # for speed alone
    check_flow_model(model)


def test_a_wrapped_network_fulfils_it():
    check_flow_model(lcv.wrap(Toy(), multiple=4, least=16))
    check_flow_model(lcv.attach(Toy(), after="encoder", multiple=4, least=16))


def test_what_is_no_flow_model_is_told_what_it_lacks():
    with pytest.raises(
        AssertionError, match=r"Linear is no FlowModel: it has no core_for_export, "
    ):
        check_flow_model(nn.Linear(2, 2))
    assert {"encode", "match", "stride", "names", "with_volume"} <= MEMBERS


class Random(Toy):
    def forward(self, image1, image2):
        return super().forward(image1, image2) + torch.rand(1)


class Keeps(Toy):
    def forward(self, image1, image2):
        self.kept = image1
        return super().forward(image1, image2)


class Mixes(Toy):
    def forward(self, image1, image2):
        return super().forward(image1, image2) + 10 * (image1.mean() - 128)


class Detached(Toy):
    def forward(self, image1, image2):
        return super().forward(image1, image2).detach().requires_grad_()


class Nan(Toy):
    def forward(self, image1, image2):
        return super().forward(image1, image2) / 0


@pytest.mark.parametrize(
    ("network", "fault"),
    [
        (Random(), "determinism: two calls with the same images give different flow"),
        (Keeps(), "determinism: a call leaves tensors behind on network: kept"),
        (Mixes(), "batch: a batch of two pairs, and each pair alone differ by"),
        (Detached(), "training: no gradient reaches any parameter"),
        (Nan(), "sizes: images of .* give a flow that is not finite"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_fault_is_named(network, fault):
    with pytest.raises(AssertionError, match=fault):
        check_flow_model(lcv.wrap(network, multiple=4, least=16))


def test_faults_of_the_wrapper_are_named_too():
    model = lcv.wrap(Toy(), multiple=4, least=16)

    class Broken(type(model)):
        volumes = ()
        forms = ("right",)

        def with_volume(self, name):
            return self

        def encodes_by_role(self):
            return False

        def encode(self, image, role="first", pad=None):
            return super().encode(image + (role == "second"), role, pad)

        @property
        def least_side(self):
            return 20

    model.__class__ = Broken
    with pytest.raises(AssertionError) as caught:
        check_flow_model(model)
    said = str(caught.value)
    assert "members: volumes is empty" in said
    assert "members: forms is ('right',), wanted some of left" in said
    assert "streaming: encode and match differ from calling the network" in said
    assert len(CHECKS) == 12

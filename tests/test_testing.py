"""The public check: our networks pass it, and each way to break the contract is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import lcv
from lcv.models.registry import NETWORKS
from lcv.models.types import MEMBERS, Fitted
from lcv.models.wrapped import Wrapped
from lcv.testing import CHECKS, check_flow_model
from testing.toy import Toy


# vcn is vcn-small with more channels, and takes three times as long.
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "vcn"])
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
        AssertionError, match=r"Linear is not a FlowModel: it has no core_for_export, "
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


class Changes(Toy):
    def forward(self, image1, image2):
        image1 += 1
        return super().forward(image1, image2)


def broken(**members):
    """A wrapped toy with W, one of whose members is replaced."""
    torch.manual_seed(0)
    model = lcv.attach(Toy(), after="encoder", multiple=4, least=16)
    model.__class__ = type("Broken", (type(model),), members)
    return model


def ignores_w(self, *images, **options):
    products, self.inner_products = self.inner_products, nn.ModuleDict()
    hooks = [*self.network.encoder._forward_hooks.items()]
    self.network.encoder._forward_hooks.clear()
    output = Wrapped.forward(self, *images, **options)
    self.inner_products = products
    self.network.encoder._forward_hooks.update(hooks)
    return output


FAULTS = {
    "number_types": lambda: lcv.wrap(Changes(), range=(0, 255), multiple=1, least=16),
    "options": lambda: broken(
        match=lambda self, *a, **o: replace(Wrapped.match(self, *a, **o), flows=())
    ),
    "volumes": lambda: broken(with_volume=lambda self, name: lambda *i: self(*i[::-1])),
    "state_dict": lambda: broken(load_state_dict=lambda self, state, strict=True: None),
    "gradient_to_w": lambda: broken(forward=ignores_w),
    "export_rule": lambda: broken(
        export_rule=property(
            lambda self: replace(
                type(self).__mro__[1].export_rule.fget(self),
                fit=lambda a, b, mode: Fitted(a[..., 1:], b[..., 1:], lambda flow: flow),
            )
        )
    ),
}


@pytest.mark.parametrize("check", FAULTS)
def test_each_check_fails_for_its_own_fault(check):
    with pytest.raises(AssertionError, match=f"- {check}: "):
        check_flow_model(FAULTS[check]())


def test_every_check_has_a_network_that_fails_it():
    named = {"determinism", "batch", "training", "sizes", "members", "streaming", *FAULTS}
    assert named == {check.__name__.removeprefix("_") for check in CHECKS}


class Begins(Toy):
    """Its last layer is zero at first, as in many networks, and it keeps what it computed."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, image1, image2):
        self.__dict__.setdefault("kept", []).clear()
        return self.scale * super().forward(image1, image2)


def test_a_network_that_starts_at_zero_flow_passes():
    check_flow_model(lcv.attach(Begins(), after="encoder", multiple=4, least=16))

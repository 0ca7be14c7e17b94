"""The public check: our networks pass it, and each way to break the contract is named."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import lcv
from lcv import testing as checks
from lcv.models.registry import NETWORKS
from lcv.models.types import MEMBERS, Defaults, Fitted, FlowOutput
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


class Own:
    """What a check is given, of a network that answers as it is told."""

    def __init__(self, model, answer=None, size=(20, 30)) -> None:
        self.model, self.answer, self.size = SimpleNamespace(**model), answer, size
        self.asked = []

    def images(self, batch=1, number=2):
        return [torch.full((batch, 3, *self.size), 10.0 * k) for k in range(number)]

    def flow(self, *images, **options):
        self.asked.append((tuple(images[0].shape), options))
        return self.answer(*images, **options)


def still(image1, image2, **options):
    return torch.ones(len(image1), 2, *image1.shape[2:])


def said(check, *own, **words) -> list[str]:
    return list(getattr(checks, f"_{check}")(Own(*own, **words)))


def test_members_by_hand():
    good = {"stride": 1, "least_side": 1, "volumes": ("own",), "forms": ("left",)}
    assert said("members", {**good, "defaults": Defaults()}) == []
    bad = {"stride": 0, "least_side": 2.5, "volumes": (), "forms": ()}
    assert [
        fault.partition(",")[0]
        for fault in said("members", {**bad, "defaults": Defaults(losses=())})
    ] == [
        "stride is 0",
        "least_side is 2.5",
        "volumes is empty",
        "forms is ()",
        "defaults.losses is empty",
    ]


def test_sizes_by_hand():
    def strict(image1, image2):
        if min(image1.shape[2:]) < 16:
            raise lcv.LcvError("too small")
        return still(image1, image2)

    own = Own({"least_side": 16}, strict)
    assert list(checks._sizes(own)) == []
    assert [shape[2:] for shape, _ in own.asked] == [(20, 30), (16, 17), (15, 24)]
    assert said("sizes", {"least_side": 16}, still) == [
        "images below least_side (16) are accepted, wanted an lcv.LcvError"
    ]
    own = Own({"least_side": 1}, still)
    assert list(checks._sizes(own)) == []
    assert len(own.asked) == 2, "nothing is smaller than 1"
    faults = said("sizes", {"least_side": 1}, lambda a, b: still(a, b)[..., 1:])
    assert faults[0] == ("images of (20, 30) give a flow of (1, 2, 20, 29), wanted their own size")
    assert len(faults) == 2
    assert "not finite" in said("sizes", {"least_side": 1}, lambda a, b: still(a, b) / 0)[0]


def test_number_types_by_hand():
    assert said("number_types", {}, still) == []
    faults = said("number_types", {}, lambda a, b: still(a, b) + (a.dtype == torch.uint8))
    assert faults == ["bytes and floats of the same value give different flow"]


def test_batches_by_hand():
    own = Own({}, still)
    assert list(checks._batch(own)) == []
    assert [shape[0] for shape, _ in own.asked] == [2, 1, 1]
    (fault,) = said("batch", {}, lambda a, b: still(a, b) * len(a))
    assert fault.startswith("a batch of two pairs, and each pair alone differ by 1 of the flow")


@pytest.mark.parametrize("by_role", [True, False])
def test_streams_by_hand(by_role):
    asked = []

    def encode(frame, role):
        asked.append(role)
        return frame

    model = {
        "encodes_by_role": lambda: by_role,
        "encode": encode,
        "match": lambda a, b, size: FlowOutput(still(a, b) * (b - a).mean() + (size != (20, 30))),
    }
    answer = lambda a, b: still(a, b) * (b - a).mean()  # noqa: E731
    assert said("streaming", model, answer) == []
    assert asked == ["first"] * 3 + ["second" if by_role else "first"] * 3
    assert said("streaming", model, still) == [
        f"encode and match differ from calling the network (frames {k}, {k + 1})" for k in (0, 1)
    ]


class Answering:
    """A network whose options all do what they say, unless they are `broken`."""

    def __init__(self, *broken: str, iters: int | None = 4) -> None:
        self.broken, self.takes_flow_init = broken, True
        self.defaults = Defaults(iters=iters, pads=("a", "b"))

    def flow(self, image1, image2, pad="a", iters=4, flow_init=None):
        flow = still(image1, image2) * (1 if "iters" in self.broken else iters)
        flow = flow if flow_init is None or "init" in self.broken else flow + flow_init.mean()
        return flow[..., 1:] if pad == "b" and "pad" in self.broken else flow

    def __call__(self, *images, all_flows=False):
        flow = self.flow(*images)
        low = None if "low" in self.broken else torch.zeros(1, 2, 4, 4)
        return FlowOutput(flow, (flow,) if all_flows and "flows" not in self.broken else (), low)


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("pad", "pad='b' gives a flow of another size"),
        ("iters", "one iteration and two give the same flow"),
        ("flows", "all_flows=True gives no flows"),
        ("low", "takes_flow_init, but `low` of the output is None"),
        ("init", "flow_init changes nothing"),
    ],
)
def test_options_by_hand(broken, fault):
    def options(*words, **more):
        own = Own({}, None)
        own.model = Answering(*words, **more)
        own.answer = own.model.flow
        return list(checks._options(own))

    assert options() == []
    assert options(broken) == [fault]
    assert options("iters", iters=None) == [], "it does not iterate"


def test_export_rules_by_hand():
    def rule(size, undone, fits_any=True):
        fit = lambda a, b, mode: Fitted(torch.zeros(1, 3, *size), b, lambda flow: undone)  # noqa: E731
        return {"export_rule": SimpleNamespace(fits_any=fits_any, modes=("m",), stride=8, fit=fit)}

    there = torch.zeros(1, 2, 20, 30)
    assert said("export_rule", rule((24, 32), there)) == []
    for size in ((20, 32), (24, 30)):
        assert said("export_rule", rule(size, there)) == [
            f"export_rule.fit gives {size[0]}×{size[1]}, wanted multiples of 8"
        ]
    assert said("export_rule", rule((24, 32), there[..., 1:])) == [
        "export_rule.fit does not undo its own change of size"
    ]
    assert said("export_rule", rule((20, 30), there[..., 1:], fits_any=False)) == []


def test_a_thousandth_of_the_flow_is_rounding():
    flow = torch.tensor([3.0, 4.0])
    assert list(checks._differ(flow + 0.003, flow, "x")) == []
    (fault,) = checks._differ(flow + 0.004, flow, "x and y")
    assert fault == "x and y differ by 0.0011 of the flow, wanted at most 0.001"
    assert list(checks._differ(torch.tensor([9e-10]), torch.zeros(1), "x")) == []
    assert len(list(checks._differ(torch.tensor([1.1e-9]), torch.zeros(1), "x"))) == 1
    assert len(list(checks._differ(torch.tensor([torch.nan]), flow[:1], "x"))) == 1


def test_the_images_of_a_check_move_by_three_pixels():
    """Of a size that is no multiple of anything, in whole numbers from black to white."""
    for least, side in ((16, 64), (80, 80)):
        own = checks._Copy(lcv.wrap(Toy(), multiple=4, least=least))
        assert own.size == (side + 5, side + 10)
        images = own.images(batch=2, number=3)
        assert [tuple(image.shape) for image in images] == [(2, 3, *own.size)] * 3
        for one, other in pairwise(images):
            assert torch.equal(one[..., 3:], other[..., :-3])
        whole = torch.cat(images)
        assert torch.equal(whole, whole.round())
        assert (whole.min(), whole.max()) == (0, 255)
        assert len(own.images()) == 2
        assert not own.model.training

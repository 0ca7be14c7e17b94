"""Foreign networks: their images, their flow and their names, whatever their convention."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError, ShapeError, WeightsError
from lcv.models import convention
from lcv.models.wrapped import Wrapped
from testing.toy import Toy


def images(h=20, w=24, number=2):
    torch.manual_seed(1)
    return list((255 * torch.rand(number, 1, 3, h, w)).round())


class Sees(nn.Module):
    """Gives as flow the first two channels of what it sees of frame 1."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, image1, image2, scale=1.0):
        self.seen.append((image1, image2))
        return image1[:, :2] * scale


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, lambda x: x),
        ({"range": (0, 1)}, lambda x: x / 255),
        ({"range": (-1, 1)}, lambda x: 2 * x / 255 - 1),
        ({"bgr": True}, lambda x: x.flip(1)),
        ({"range": (-0.5, 0.5), "bgr": True}, lambda x: x.flip(1) / 255 - 0.5),
    ],
)
def test_range_and_order_of_channels(options, expected):
    network = Sees()
    pair = images()
    flow = lcv.wrap(network, **options)(*pair).flow
    for seen, image in zip(network.seen[0], pair, strict=True):
        torch.testing.assert_close(seen, expected(image))
    torch.testing.assert_close(flow, expected(pair[0])[:, :2])


@pytest.mark.parametrize("pad", [None, "sintel", "kitti"])
def test_sides_are_padded_to_the_multiple_and_the_flow_is_cut_back(pad):
    network, pair = Sees(), images(21, 30)
    flow = lcv.wrap(network, multiple=8)(*pair, pad=pad).flow
    assert network.seen[0][0].shape[2:] == (24, 32)
    torch.testing.assert_close(flow, pair[0][:, :2])


def test_sides_are_resized_and_the_flow_scaled_back():
    network, pair = Sees(), images(20, 24)
    model = lcv.wrap(network, multiple=16, fit="resize")
    network.forward = lambda a, b: torch.ones_like(a[:, :2])
    flow = model(*pair).flow
    torch.testing.assert_close(flow[:, 0], torch.full((1, 20, 24), 24 / 32))
    torch.testing.assert_close(flow[:, 1], torch.full((1, 20, 24), 20 / 32))
    with pytest.raises(ArgumentError, match="takes no `pad`: it has a rule of its own"):
        model(*pair, pad="sintel")


def returns(what):
    return lambda image1, image2: what(image1[:, :2])


@pytest.mark.parametrize(
    ("network", "options", "number"),
    [
        (returns(lambda f: f), {}, 1),
        (returns(lambda f: [0 * f, f]), {}, 2),
        (returns(lambda f: (0 * f, f)), {}, 2),
        (returns(lambda f: {"flows": f[:, None]}), {"flow": "flows"}, 1),
        (returns(lambda f: {"flow": f, "all": [f, f, f]}), {"flow": "flow", "flows": "all"}, 3),
        (returns(lambda f: SimpleNamespace(final=f)), {"flow": "final"}, 1),
    ],
    ids=["flow", "list", "tuple", "stacked in a dict", "list in a dict", "object"],
)
def test_where_the_flow_is(network, options, number):
    model, pair = lcv.wrap(network, **options), images()
    output = model(*pair, all_flows=True)
    torch.testing.assert_close(output.flow, pair[0][:, :2])
    assert len(output.flows) == number
    assert model.eval()(*pair).flows == ()


def test_both_images_in_a_dictionary():
    def network(given):
        assert given["images"].shape == (1, 2, 3, 20, 24)
        return {"flows": given["images"][:, 1:, :2]}

    pair = images()
    flow = lcv.wrap(network, stacked="images", flow="flows")(*pair).flow
    torch.testing.assert_close(flow, pair[1][:, :2])


def test_iterations_and_options_go_to_the_network_s_own_arguments():
    def network(image1, image2, steps=7, scale=1.0):
        return image1[:, :2] * steps * scale

    model, (one, two) = lcv.wrap(network, iters="steps", options={"scale": 2.0}), images()
    assert model.defaults.iters == 7
    torch.testing.assert_close(model(one, two).flow, 14 * one[:, :2])
    torch.testing.assert_close(model(one, two, iters=3).flow, 6 * one[:, :2])
    with pytest.raises(ArgumentError, match="iters is 'turns', but .* has no argument of that"):
        lcv.wrap(network, iters="turns")(one, two)
    with pytest.raises(ArgumentError, match="network takes no `iters`: wrap it with iters=NAME"):
        lcv.wrap(network)(one, two, iters=3)


def test_the_state_dict_bears_the_network_s_own_names():
    toy = Toy()
    model = lcv.wrap(toy, multiple=4)
    assert set(model.state_dict()) == set(toy.state_dict())
    parallel = nn.DataParallel(model)
    assert set(parallel.state_dict()) == {f"module.{name}" for name in toy.state_dict()}
    state = {name: torch.randn_like(value) for name, value in toy.state_dict().items()}
    model.load_state_dict(state)
    assert torch.equal(toy.head.weight, state["head.weight"])
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({"head.weight": state["head.weight"]})


def test_an_attached_network_is_wrapped_and_says_where_its_w_is():
    model = lcv.attach(Toy(), after="encoder", multiple=4)
    assert isinstance(model, Wrapped)
    assert list(model.inner_products) == ["encoder"]
    assert model.inner_product.channels == 8
    assert model.layer_before_w() is model.network.encoder
    assert model.spec.inner_product == "elliptical"
    assert lcv.wrap(Toy()).inner_product is None


def test_behind_a_sequence_of_layers_deep_inside():
    """A Sequential calls all its children, so W must not become one of them."""
    network = nn.ModuleDict(
        {"a": nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sequential(nn.Conv2d(4, 4, 1)))}
    )

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network

        def forward(self, image1, image2):
            return (self.net.a(image1) * self.net.a(image2))[:, :2]

    plain, pair = Deep(), images()
    model = lcv.attach(plain, after="net.a.1", channels=4)
    torch.testing.assert_close(model(*pair).flow, plain(*pair))
    names = {"inner_products.net_a_1.S_upper", "inner_products.net_a_1.t"}
    assert set(model.state_dict()) == set(plain.state_dict()) | names
    with torch.no_grad():
        model.inner_product.t.normal_()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.inner_product.t.normal_()
    assert not torch.equal(twin(*pair).flow, model(*pair).flow)
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin(*pair).flow, model(*pair).flow)
    folded = lcv.fold(model, into="net.a.1.0")
    torch.testing.assert_close(folded(*pair).flow, model(*pair).flow, rtol=1e-4, atol=1e-2)
    assert set(folded.state_dict()) == set(plain.state_dict())


def test_attaching_takes_what_wrap_was_told():
    plain = lcv.wrap(Toy(), multiple=4, after="encoder", channels=8)
    model, pair = lcv.attach(plain), images()
    assert torch.equal(model(*pair).flow, plain(*pair).flow)
    with pytest.raises(ArgumentError, match="wrapped already; leave multiple out"):
        lcv.attach(plain, multiple=8)


def test_a_network_that_keeps_tensors_of_its_last_call_is_copied():
    class Keeps(Toy):
        def forward(self, image1, image2):
            self.pyramid = [self.encoder(image1), image2]
            return super().forward(image1, image2)

    model, pair = lcv.attach(Keeps(), after="encoder", multiple=4), images()
    flow = model(*pair).flow
    torch.testing.assert_close(lcv.fold(model)(*pair).flow, flow)


def known(name, monkeypatch):
    """A class that says it is another package's."""
    module, _, kind = name.rpartition(".")
    made = type(kind, (nn.Module,), {"__module__": module})
    return type("Own", (made,), {"__module__": "mine"})


def test_torchvision_and_ptlflow_need_no_options(monkeypatch):
    pair = images(130, 140)
    for name in convention.KNOWN:
        network = known(name, monkeypatch)()
        if name.startswith("torchvision"):
            network.forward = lambda a, b, num_flow_updates=12: [a[:, :2]] * num_flow_updates
            one, last = lcv.wrap(network)(*pair, all_flows=True), 2 * pair[0][:, :2] / 255 - 1
            assert len(one.flows) == 12
        else:
            network.forward = lambda given: {"flows": given["images"][:, :1, :2]}
            one, last = lcv.wrap(network)(*pair), pair[0].flip(1)[:, :2] / 255
        torch.testing.assert_close(one.flow, last)
        assert lcv.Predictor(network, device="cpu").model.network is network


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: lcv.wrap(Toy(), range=255),
            r"range is 255, wanted \(black, white\), as \(0, 255\)",
        ),
        (
            lambda: lcv.wrap(Toy(), range=(0, 1, 2)),
            r"range is \(0, 1, 2\), wanted \(black, white\)",
        ),
        (lambda: lcv.wrap(Toy(), range=("a", "b")), "range is .* wanted"),
        (lambda: lcv.wrap(Toy(), options=3), "options is 3, wanted names and values"),
        (lambda: lcv.wrap(Toy(), multiple=True), "multiple is True, wanted a whole number"),
        (lambda: lcv.wrap(Toy(), iters="many"), "iters is 'many', but Toy has no argument of that"),
        (lambda: lcv.wrap(Toy(), after="lost"), "Toy has no module 'lost'; it has encoder"),
        (lambda: lcv.attach(lcv.wrap(lambda a, b: a), after="x"), "has no module 'x'; it has none"),
        (lambda: lcv.wrap(Toy(), range=(1, 0)), r"range is \(1, 0\), wanted \(black, white\)"),
        (lambda: lcv.wrap(Toy(), fit="crop"), "fit is 'crop', wanted pad or resize"),
        (lambda: lcv.wrap(Toy(), multiple=0), "multiple is 0, wanted a whole number, 1 or more"),
        (lambda: lcv.wrap(Toy), "wanted a network, an nn.Module or a function of two images"),
        (lambda: lcv.wrap("toy"), "wanted a network, .* got 'toy'"),
        (lambda: lcv.wrap(lcv.wrap(Toy())), "is a FlowModel already; use it as it is"),
        (lambda: lcv.Predictor(Toy()), r"how to call it is not known. Wrap it, .*lcv\.wrap\("),
    ],
)
def test_what_cannot_be_wrapped(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        (lambda a, b: {"flow": a, "mask": b}, {}, "dictionary of flow, mask, wanted a flow or a"),
        (
            lambda a, b: {"mask": b},
            {"flow": "flow"},
            "a dictionary of mask; it has no 'flow'. Correct flow=",
        ),
        (lambda a, b: a, {}, r"its flow is \(1, 3, 20, 24\), wanted \(1, 2, 20, 24\)"),
        (lambda a, b: ["x"], {}, r"its flow is a str, wanted \(1, 2, 20, 24\)"),
        (lambda a, b: a[:, :2, ::2], {}, r"its flow is \(1, 2, 10, 24\), wanted \(1, 2, 20, 24\)"),
        (lambda a, b: a[:, :2], {"least": 21}, "the image is 20×24, wanted at least 21 pixels"),
    ],
)
def test_what_a_network_returns_is_checked(network, options, message):
    with pytest.raises((ArgumentError, ShapeError), match=message):
        lcv.wrap(network, **options)(*images())


def test_a_flow_by_its_place_in_what_is_returned():
    pair = images(24, 32)
    model = lcv.wrap(lambda a, b: (b[:, :2], a[:, :2]), flow=1)
    assert torch.equal(model(*pair).flow, pair[0][:, :2])
    with pytest.raises(ArgumentError, match="returned a tuple of 2; it has no 2. Correct flow="):
        lcv.wrap(lambda a, b: (a, b), flow=2)(*pair)


def test_help_lists_every_option():
    import inspect

    from lcv.models.convention import Convention

    options = [*inspect.signature(lcv.wrap).parameters][1:]
    assert options == [*inspect.signature(Convention).parameters]
    assert all(f"    {name}:" in lcv.wrap.__doc__ for name in options)


def test_a_local_class_and_a_function_are_saved_and_read_again(tmp_path):
    class Local(Toy):
        pass

    lcv.save(lcv.wrap(Local(), multiple=4), tmp_path / "a.safetensors")
    source = tmp_path / "nets.py"
    source.write_text(
        "import lcv\nfrom testing.toy import Toy\ndef net():\n    return lcv.wrap(Toy(), multiple=4)\n"
    )
    lcv.load(f"{source}:net", weights=tmp_path / "a.safetensors")
    with pytest.raises(
        WeightsError, match="these are weights of raft-small, wanted those of nets.py:n"
    ):
        lcv.load(f"{source}:net", weights="raft-small")


def test_a_network_may_change_its_input():
    """Frames of a stream serve twice, as second and as first."""

    def impolite(first, second):
        first.mul_(0.5)
        second.mul_(0.5)
        return (first - second)[:, :2]

    predictor = lcv.Predictor(lcv.wrap(impolite), device="cpu")
    frames = [torch.full((3, 64, 64), value) for value in (10.0, 20.0, 40.0)]
    flows = [float(result.flow.mean()) for result in predictor.stream(frames)]
    assert flows == [-5.0, -10.0]


def test_how_a_foreign_network_gets_into_a_file():
    """One size a file; both images padded or resized to multiples, and the flow taken back."""
    pair = images(21, 30)
    rule = lcv.wrap(Sees(), multiple=8, least=20).export_rule
    assert (rule.stride, rule.least) == (8, 24)
    assert rule.rule == "Pad both images to multiples of 8, and undo that for the flow."
    assert rule.lookups == ("grid_sample",)
    for mode, left in ((None, 1), ("sintel", 1), ("kitti", 1)):
        fitted = rule.fit(*pair, mode)
        assert fitted.image1.shape[2:] == fitted.image2.shape[2:] == (24, 32)
        top = 0 if mode == "kitti" else 1
        assert torch.equal(fitted.image1[..., top : top + 21, left : left + 30], pair[0])
        assert torch.equal(fitted.undo(fitted.image2), pair[1])
    rule = lcv.wrap(Sees(), multiple=8, fit="resize").export_rule
    assert rule.rule.startswith("Resize both images")
    fitted = rule.fit(*pair, None)
    assert fitted.image1.shape[2:] == fitted.image2.shape[2:] == (24, 32)
    assert not torch.equal(fitted.image1, fitted.image2)
    back = fitted.undo(torch.ones(1, 2, 24, 32))
    torch.testing.assert_close(back[:, 0], torch.full((1, 21, 30), 30 / 32))
    torch.testing.assert_close(back[:, 1], torch.full((1, 21, 30), 21 / 24))


def test_what_there_is_of_a_network_to_compile():
    network = Sees()
    assert lcv.wrap(network).parts_to_compile() == [(network, "forward")]
    assert lcv.wrap(lambda a, b: a[:, :2]).parts_to_compile() == []
    assert lcv.wrap(lambda a, b: a[:, :2]).submodules() == {}

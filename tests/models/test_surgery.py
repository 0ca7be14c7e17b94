"""Attach changes nothing before training; fold changes nothing ever."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError
from lcv.inner_product import INNER_PRODUCTS
from lcv.models.archive import read_checkpoint
from lcv.models.raft.names import to_authors_names
from lcv.models.surgery import attach, fold
from testing.painted import painted_pair
from testing.shared import shared


def strong(model):
    """Move W far from I: eigenvalues from about 1/12 to 12, every plane turned."""
    with torch.no_grad():
        for key, value in model.named_parameters():
            leaf = key.rpartition(".")[2]
            if leaf == "t":
                value.copy_(torch.linspace(-4, 4, len(value)))
            elif leaf == "S_upper":
                value.normal_(std=0.2)
            elif leaf == "R":
                value.add_(0.3 * torch.randn_like(value))
    return model


@pytest.fixture(scope="module")
def pair():
    return painted_pair(96, 128)[:2]


@torch.no_grad()
@pytest.mark.parametrize("name", ["raft-sintel", "raft-small"])
def test_folding_a_strong_w_keeps_the_flow(name, pair, tmp_path):
    path = shared("weights", f"{name}.pth")
    model = "raft-large" if name == "raft-sintel" else "raft-small"
    unfolded = strong(lcv.load(model, weights=path))
    folded = fold(unfolded)
    plain = lcv.load(model, weights=path, inner_product="euclidean")
    flow = unfolded(*pair, iters=6).flow
    assert (folded(*pair, iters=6).flow - flow).abs().max() <= 1e-4
    assert (plain(*pair, iters=6).flow - flow).abs().max() > 1e-2, "W was too weak to tell"
    assert folded.spec.inner_product == "euclidean"
    assert [n for n, _ in folded.named_parameters()] == [n for n, _ in plain.named_parameters()]

    # The folded file is a plain checkpoint under the authors' names.
    torch.save(
        {f"module.{k}": v for k, v in to_authors_names(folded.state_dict()).items()},
        tmp_path / "a.pth",
    )
    assert set(read_checkpoint(tmp_path / "a.pth").state) == set(read_checkpoint(path).state)
    again = lcv.load(model, weights=tmp_path / "a.pth", inner_product="euclidean")
    assert torch.equal(again(*pair, iters=6).flow, folded(*pair, iters=6).flow)


@torch.no_grad()
@pytest.mark.parametrize("kind", [k for k in INNER_PRODUCTS if k not in ("free", "riemannian")])
def test_in_float64_folding_is_exact_for_every_kind(kind, pair):
    torch.manual_seed(0)
    model = strong(lcv.build("raft-small", kind).double().eval())
    images = [image.double() for image in pair]
    torch.testing.assert_close(fold(model)(*images, iters=3).flow, model(*images, iters=3).flow)


@torch.no_grad()
def test_the_model_given_is_not_touched(pair):
    model = strong(lcv.build("raft-small").eval())
    before = copy.deepcopy(model.state_dict())
    fold(model)
    attach(lcv.fold(model))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize("name", ["vcn", "ddflow"])
def test_where_no_bare_linear_layer_precedes_the_volume_folding_is_refused(name):
    with pytest.raises(
        ArgumentError, match="scales its features to unit length .* W adds capacity"
    ):
        fold(lcv.build(name))
    with pytest.raises(ArgumentError, match="`into` is for foreign networks"):
        fold(lcv.build(name), into="pyramid")


def test_a_free_w_cannot_be_carried_by_one_shared_encoder():
    with pytest.raises(
        ArgumentError, match="one encoder serves both frames.*`free` W need not have"
    ):
        fold(lcv.build("raft-small", "free"))
    with pytest.raises(ArgumentError, match="a `free` W cannot stand behind an encoder"):
        attach(Foreign(), after="encoder", channels=6, inner_product="free")


@torch.no_grad()
@pytest.mark.parametrize("name", ["raft-large", "raft-small", "vcn-small", "ddflow"])
def test_attaching_to_our_own_networks_changes_no_bit(name):
    torch.manual_seed(0)
    plain = lcv.build(name, "euclidean").eval()
    pair = painted_pair(72, 80)[:2]
    with_lcv = attach(plain)
    assert with_lcv.spec.inner_product == "elliptical"
    assert torch.equal(with_lcv(*pair).flow, plain(*pair).flow)
    extra = sum(p.numel() for p in with_lcv.parameters()) - sum(
        p.numel() for p in plain.parameters()
    )
    assert extra > 0


class Foreign(nn.Module):
    """Somebody else's matching network: one encoder, asked for both frames in one call.

    Its flow is that of two costs, which is as good as any for a test.
    """

    def __init__(self, output="list"):
        super().__init__()
        self.encoder = Frames(output)

    def forward(self, image1, image2):
        f1, f2 = self.encoder([image1, image2])
        costs = torch.einsum("bchw,bchw->bhw", f1, f2)
        return torch.stack((costs, 2 * costs), 1)


class Frames(nn.Module):
    def __init__(self, output):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 6, 1)
        self.output = output

    def forward(self, images):
        maps = [self.last(torch.relu(self.first(image))) for image in images]
        return {"list": list, "tuple": tuple, "dict": lambda m: dict(enumerate(m))}[self.output](
            maps
        )


@pytest.mark.parametrize("output", ["list", "tuple"])
def test_behind_a_named_module_of_a_foreign_network(output):
    torch.manual_seed(0)
    foreign = Foreign(output).double()
    images = (255 * torch.rand(2, 1, 3, 7, 9).double()).unbind()
    attached = attach(foreign, after="encoder", channels=6).double()
    assert torch.equal(attached(*images).flow, foreign(*images))
    assert set(foreign.state_dict()) < set(attached.state_dict())
    assert {"inner_products.encoder.t", "inner_products.encoder.S_upper"} <= set(
        attached.state_dict()
    )

    attached(*images).flow.square().sum().backward()
    assert attached.inner_product.t.grad.abs().min() > 0

    strong(attached)
    W = attached.inner_product.matrix()
    f1, f2 = foreign.encoder(images)
    costs = torch.einsum("bchw,cd,bdhw->bhw", f1, W, f2)
    by_hand = torch.stack((costs, 2 * costs), 1)
    torch.testing.assert_close(attached(*images).flow, by_hand)

    copied = copy.deepcopy(attached)
    torch.testing.assert_close(copied(*images).flow, by_hand)

    folded = fold(attached, into="encoder.last")
    torch.testing.assert_close(folded(*images).flow, by_hand)
    assert set(folded.state_dict()) == set(foreign.state_dict())
    kinds = [each.spec.inner_product for each in (attached, folded)]
    assert kinds == ["elliptical", "euclidean"]


def test_a_known_family_needs_no_more_words():
    """The authors' RAFT is known by its encoder; ours stands in for it with the same names."""

    class Authors(nn.Module):
        def __init__(self):
            super().__init__()
            self.fnet = lcv.build("raft-small", "euclidean").fnet

        def forward(self, image1, image2):
            features = (self.fnet(image1) * self.fnet(image2))[:, :2]
            return nn.functional.interpolate(features, scale_factor=8.0)

    model = Authors().eval()
    attached = attach(model, range=(0, 1))
    assert attached.inner_product.channels == 128
    pair = painted_pair(72, 80)[:2]
    assert torch.equal(attached(*pair).flow, model(*(image * (1 / 255) for image in pair)))
    strong(attached)
    torch.testing.assert_close(
        fold(attached)(*pair).flow, attached(*pair).flow, atol=1e-4, rtol=1e-4
    )


def test_what_cannot_be_attached_is_said():
    foreign = Foreign()
    with pytest.raises(ArgumentError, match=r"Foreign: where W goes is not known. .*after=MODULE"):
        attach(foreign)
    with pytest.raises(ArgumentError, match=r"Foreign has no module 'fnet'; it has encoder"):
        attach(foreign, after="fnet", channels=6)
    with pytest.raises(ArgumentError, match="say how many channels encoder gives"):
        attach(foreign, after="encoder")
    attached = attach(foreign, after="encoder", channels=6)
    with pytest.raises(ArgumentError, match="encoder already has an inner product"):
        attach(attached, after="encoder", channels=6)
    with pytest.raises(ArgumentError, match="encoder is a Frames, not a bare linear layer"):
        fold(attached)
    with pytest.raises(ArgumentError, match="no inner product in this Foreign"):
        fold(foreign)
    with pytest.raises(ArgumentError, match="fold: there is no inner product in this Foreign$"):
        fold(lcv.wrap(foreign))
    strange = attach(Foreign("dict"), after="encoder", channels=6)
    image = torch.zeros(1, 3, 7, 9)
    with pytest.raises(ArgumentError, match="Frames gives a dict, wanted a tensor of features"):
        strange(image, image)
    with pytest.raises(ArgumentError, match="the model has no module 'nope'"):
        fold(attached, into="nope")
    with pytest.raises(
        ArgumentError, match=r"encoder\.first gives 8 channels and the inner product"
    ):
        fold(attached, into="encoder.first")
    wrong = attach(Foreign(), after="encoder", channels=5)
    with pytest.raises(
        ArgumentError, match=r"features of shape \(1, 6, 7, 9\), but .* \(b, 5, h, w\)"
    ):
        wrong(image, image)
    with pytest.raises(ArgumentError, match="wanted a network, got a str"):
        fold("x")


def test_a_trained_w_is_not_thrown_away():
    with pytest.raises(
        ArgumentError, match=r"has a W already \(Elliptical\), which would be thrown"
    ):
        attach(lcv.build("raft-small", "elliptical"))
    with pytest.raises(ArgumentError, match="after is for networks that have none"):
        attach(lcv.build("raft-small", "euclidean"), after="fnet")


def test_wrapped_networks_are_named_as_such():
    model = lcv.build("raft-small")
    for wrapped, inside in (
        (nn.DataParallel(model), "module"),
        (torch.compile(model), "_orig_mod"),
    ):
        with pytest.raises(ArgumentError, match=f"around a network; pass model.{inside}"):
            fold(wrapped)
        with pytest.raises(ArgumentError, match=f"around a network; pass model.{inside}"):
            attach(wrapped)


def test_what_is_attached_follows_the_network_s_precision_and_mode():
    attached = attach(lcv.build("raft-small", "euclidean").double().eval())
    assert attached.inner_product.t.dtype == torch.float64
    assert not attached.inner_product.training


class Normed(nn.Module):
    """Its encoder has the name of one that ends in a bare convolution, and does not."""

    def __init__(self):
        super().__init__()
        self.fnet = nn.Sequential()
        self.fnet.add_module("conv2", nn.Conv2d(3, 6, 3, padding=1))
        self.fnet.add_module("norm", nn.InstanceNorm2d(6))

    def forward(self, image1, image2):
        return (self.fnet(image1) * self.fnet(image2))[:, :2]


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
        self.b = nn.Conv2d(3, 3, 1)

    def forward(self, image1, image2):
        return (self.a(image1) * self.a(image2) + self.b(image1) * self.b(image2))[:, :2]


def test_a_fold_that_would_change_the_features_is_refused():
    torch.manual_seed(0)
    attached = attach(Normed())
    strong(attached)
    with pytest.raises(ArgumentError, match=r"fold: the features of fnet would change by .* %"):
        fold(attached)
    attached = attach(Two(), after="a", channels=3)
    strong(attached)
    with pytest.raises(ArgumentError, match="the features of a would change"):
        fold(attached, into="a.0")
    assert not fold(attached, into="a.1").inner_products
    twice = attach(attached, after="b", channels=3)
    with pytest.raises(ArgumentError, match="into names one layer, but Two has 2 inner products"):
        fold(twice, into="b")

"""Calls: each network in its setting, and a peer's without what we do around it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
import torch

import lcv
from lcv.bench.calls import make_call, our_network, tf32
from lcv.bench.cells import Cell, Point
from lcv.models.registry import NETWORKS
from lcv.models.types import FlowOutput, Peer
from testing.networks import Stub


def test_a_peer_is_called_with_images_that_are_ready(fake_peer):
    theirs = Cell("raft-small", Point(64, 72, 1, 1), "none", "", peer="elsewhere")
    call = make_call(theirs, [torch.zeros(1, 3, 64, 72)] * 2)
    returned = call.run()  # what the network itself gives
    assert isinstance(returned, torch.Tensor)
    assert torch.equal(call.flow(returned), returned)


def test_without_lcv_has_the_trained_weights_less_w():
    without, trained = our_network("raft-small", "none").state_dict(), lcv.load("raft-small")
    assert not any("inner_product" in name for name in without)
    assert all(torch.equal(value, trained.state_dict()[name]) for name, value in without.items())


def test_tf32_is_as_it_was_afterwards():
    had = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with tf32(not had[0]):
        assert (
            torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is not had[0]
        )
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == had


@pytest.mark.parametrize("kind", ["none", "unfolded", "folded", "authors"])
def test_each_kind_of_lcv_is_built_so(monkeypatch, kind):
    """A network that is not embedded is born with W or without; "authors" is a way to call it."""
    network = our_network("vcn-small", kind if kind != "folded" else "unfolded")
    assert any("inner_product" in name for name in network.state_dict()) == (kind != "none")
    folded = []
    monkeypatch.setattr("lcv.bench.calls.lcv.fold", lambda net: folded.append(net) or net)
    our_network("raft-small", kind)
    assert len(folded) == (kind == "folded")
    assert all(not net.training for net in folded)


class Frozen(Stub):
    """Flow of zeros; says in which type a product is computed, and what it was called with."""

    seen: ClassVar[list] = []

    def forward(self, image1, image2, **options):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
        Frozen.seen.append((product.dtype, torch.is_grad_enabled(), self.training, options))
        return FlowOutput(torch.zeros_like(image1[:, :2]))

    def authors_way(self):
        Frozen.seen.append("authors")
        return self

    def with_volume(self, name):
        Frozen.seen.append(name)
        return self


@pytest.mark.parametrize(
    ("precision", "kind", "how", "dtype"),
    [
        ("float32", "unfolded", "on-demand", torch.float32),
        ("tf32", "authors", "authors", torch.float32),
        ("bf16", "none", "on-demand", torch.bfloat16),
        ("fp16", "unfolded", "on-demand", torch.float16),
    ],
)
def test_a_call_has_its_precision_and_iterations_and_no_gradients(
    monkeypatch, precision, kind, how, dtype
):
    monkeypatch.setattr("lcv.bench.calls.our_network", lambda name, lcv: Frozen())
    Frozen.seen.clear()
    cell = Cell("x", Point(8, 8, 1, 5), kind, "on-demand", precision=precision)
    call = make_call(cell, [torch.zeros(1, 3, 8, 8)] * 2)
    flow = call.flow(call.run())
    assert flow.shape == (1, 2, 8, 8)
    assert Frozen.seen == [how, (dtype, False, False, {"iters": 5})]


def test_a_prepared_network_has_its_own_precision(monkeypatch):
    made = []

    def prepared(model, precision):
        made.append((type(model), precision))
        return model

    monkeypatch.setattr("lcv.bench.calls.our_network", lambda name, lcv: Frozen())
    monkeypatch.setattr("lcv.bench.calls.Prepared", prepared)
    Frozen.seen.clear()
    cell = Cell("x", Point(8, 8, 1, 5), "none", "local", "prepared", "bf16")
    make_call(cell, [torch.zeros(1, 3, 8, 8)] * 2).run()
    assert made == [(Frozen, "bf16")]
    assert Frozen.seen[-1][0] == torch.float32  # no autocast around it


def test_weights_are_the_same_for_all_calls():
    cell = Cell("raft-small", Point(64, 72, 1, 1), "none", "all-pairs")
    frames = [torch.rand(1, 3, 64, 72)] * 2
    drawn = []
    for seed in (3, 4):
        torch.manual_seed(seed)
        make_call(cell, frames)
        drawn.append(torch.rand(1).item())
    assert drawn[0] == drawn[1]


def test_a_compiled_peer_is_compiled_anew_for_its_size_and_iterates_as_asked(monkeypatch):
    events = []

    class Theirs(torch.nn.Module):
        def compile(self, **options):
            events.append(options)

        def forward(self, image1, image2):
            return image1[:, :2]

    def built(ours, iters):
        events.append(iters)
        return Theirs()

    entry = replace(NETWORKS["raft-small"], peers=(Peer("other", None), Peer("elsewhere", built)))
    monkeypatch.setitem(NETWORKS, "raft-small", entry)
    monkeypatch.setattr(torch.compiler, "reset", lambda: events.append("reset"))
    cell = Cell("raft-small", Point(64, 72, 1, 7), "none", "", peer="elsewhere")
    frames = [torch.zeros(1, 3, 64, 72)] * 2
    make_call(cell, frames)
    assert events == [7]
    make_call(replace(cell, engine="compiled"), frames)
    assert events == [7, 7, "reset", {"dynamic": False}]


@pytest.mark.parametrize(
    ("kind", "product"),
    [("none", "euclidean"), ("unfolded", "elliptical"), ("authors", "elliptical")],
)
def test_a_factory_makes_its_network_with_w_or_without(kind, product, monkeypatch):
    made = []

    def build(*words):
        made.append(words)
        return torch.nn.Identity()

    monkeypatch.setattr("lcv.bench.calls.build", build)
    assert isinstance(our_network("mine.py:net", kind), torch.nn.Identity)
    assert made == [("mine.py:net", product)]

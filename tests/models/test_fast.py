"""Prepared networks: the same function as the plain forward, and graphs where there is a GPU."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import lcv
from lcv.errors import ArgumentError, ShapeError
from lcv.models.fast import Prepared, _copied, _Graph
from lcv.models.types import FlowOutput
from testing.streams import pretend_cuda


def network(name: str, form: str = "left", volume: str = "all-pairs") -> nn.Module:
    """Random weights with a W that is not the identity, and batch norms that do something."""
    torch.manual_seed(0)
    model = lcv.build(name, "elliptical", form=form).eval()
    with torch.no_grad():
        for part in model.inner_product.parameters():
            part.add_(0.1 * torch.randn_like(part))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
    return model.with_volume(volume)


def frames(b: int = 1, h: int = 59, w: int = 75) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return tuple(255 * torch.rand(2, b, 3, h, w))


@pytest.mark.parametrize(
    ("name", "form", "volume", "options"),
    [
        ("raft-large", "left", "all-pairs", {"iters": 3}),
        ("raft-large", "factor", "on-demand", {"iters": 1, "pad": "kitti"}),
        ("raft-small", "zca", "all-pairs", {"iters": 3, "flow_init": torch.ones(2, 2, 8, 10)}),
    ],
)
def test_a_prepared_network_is_the_network(name, form, volume, options):
    model, (first, second) = network(name, form, volume), frames(2)
    with torch.no_grad():
        plain = model(first, second, **options)
    fast = Prepared(model)
    assert fast.precision == "float32"
    out = fast(first, second, **options)
    # Sums in another order, W and batch norms multiplied into weights: some units in the last place
    # of float32 (6e-8 of features of size 1), a hundredfold through the convolutions and iterations.
    for got, want in ((out.flow, plain.flow), (out.low, plain.low)):
        torch.testing.assert_close(got, want, atol=1e-5 * float(want.abs().max()), rtol=0)
    assert out.flow.shape == (2, 2, *first.shape[2:])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_stays_near(precision):
    model, (first, second) = network("raft-small"), frames()
    with torch.no_grad():
        plain = model(first, second, iters=3).flow
    out = Prepared(model, precision)(first, second, iters=3).flow
    assert out.dtype == torch.float32
    # Relative to the flow, a few roundings of a half float.
    eps = torch.finfo({"bf16": torch.bfloat16, "fp16": torch.float16}[precision]).eps
    assert (out - plain).norm(dim=1).mean() < 4 * eps * plain.norm(dim=1).mean()


def test_uint8_frames_and_default_iterations():
    model = network("raft-small")
    first, second = (frame.to(torch.uint8) for frame in frames())
    with torch.no_grad():
        plain = model(first, second).flow
    assert (Prepared(model)(first, second).flow - plain).abs().max() < 1e-3 * plain.abs().max()


class Toy(nn.Module):
    """A network without a prepared form, which says what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 1)

    def forward(self, image1, image2, **options):
        return FlowOutput(flow=self.layer(image1 - image2), extra=options)


def test_a_network_without_a_prepared_form_runs_as_it_is(caplog):
    model = Toy().eval()
    with caplog.at_level(logging.INFO, "lcv"):
        fast = Prepared(model)
    assert "Toy on cpu in float32, without graphs" in caplog.text
    first, second = frames()
    out = fast(first, second, iters=5)
    assert torch.equal(out.flow, model(first, second).flow)
    assert out.extra == {"iters": 5}
    assert not out.flow.requires_grad
    assert Prepared(model, "bf16")(first, second).flow.dtype == torch.bfloat16


def test_refusals():
    model = network("raft-small")
    first, second = frames()
    with pytest.raises(ArgumentError, match="precision is 'half', wanted one of auto, float32"):
        Prepared(model, "half")
    with pytest.raises(ArgumentError, match="graphs need a CUDA device, the network is on cpu"):
        Prepared(model, graphs=True)
    with pytest.raises(ArgumentError, match="keep is 0"):
        Prepared(model, keep=0)
    with pytest.raises(ArgumentError, match=r"in training mode; call \.eval\(\) first"):
        Prepared(network("raft-small").train())
    fast = Prepared(model)
    with pytest.raises(ShapeError, match="the image is 40×75 pixels, wanted at least 57"):
        fast(first[:, :, :40], second[:, :, :40])
    with pytest.raises(ShapeError, match="image2"):
        fast(first, second[:, :, :58])
    with pytest.raises(ArgumentError, match="iters must be a whole number of at least 1, got 0"):
        fast(first, second, iters=0)
    with pytest.raises(ShapeError, match="flow_init"):
        fast(first, second, flow_init=torch.zeros(1, 2, 3, 3))


def with_graphs(**options) -> Prepared:
    """As on a GPU, whose part the test plays."""
    fast = Prepared(Toy().eval(), **options)
    fast.graphs = True
    return fast


def test_what_comes_twice_is_captured_and_the_longest_unused_is_let_go(monkeypatch):
    fast, captured = with_graphs(keep=2), []

    def capture(tensors, options):
        captured.append((tensors[0].shape[3], len(tensors), options))
        return lambda given: ("replayed", *given)

    monkeypatch.setattr(fast, "_captured", capture)
    a, b, c = (frames(h=8, w=width) for width in (8, 9, 10))
    assert torch.equal(fast(*a, iters=3).flow, fast._run(*a).flow)
    assert captured == []
    assert fast(*a, iters=3) == ("replayed", *a)
    assert fast(*a, iters=3) == ("replayed", *a)
    assert captured == [(8, 2, {"iters": 3})]
    captured.clear()
    start = torch.zeros(1, 2, 8, 10)
    out = fast(*b, flow_init=start, pad="kitti")
    assert out.extra == {"flow_init": start, "pad": "kitti"}
    assert fast(*b, flow_init=start, pad="kitti") == ("replayed", *b, start)
    fast(*a, iters=3)
    for _ in range(2):
        fast(*c)
    fast(*a, iters=3)
    assert captured == [(9, 3, {"pad": "kitti"}), (10, 2, {})], "the first was used since"
    captured.clear()
    fast(*b, flow_init=start, pad="kitti")
    fast(*a, iters=3)
    assert captured == [(9, 3, {"pad": "kitti"})]
    fast._pool = "pool"
    fast.forget()
    assert fast._pool is None
    fast(*a, iters=3)
    assert [width for width, *_ in captured] == [9, 8]


def test_what_cannot_be_captured_runs_as_it_is(monkeypatch):
    fast, asked = with_graphs(), []
    monkeypatch.setattr(fast, "_captured", lambda *given: asked.append(given))
    pair = frames(h=8, w=8)
    for _ in range(3):
        assert fast(*pair, iters=2).extra == {"iters": 2}
    assert asked == [(pair, {"iters": 2})] * 2


def test_a_call_is_captured_on_a_stream_where_it_ran_before(monkeypatch):
    events, fast = pretend_cuda(monkeypatch), with_graphs()
    first, second = frames(h=8, w=8)
    plain, asked = fast._run, []

    def run(*tensors, **options):
        asked.append(tensors)
        events.append("run")
        return plain(*tensors, **options)

    monkeypatch.setattr(fast, "_run", run)
    for _ in range(2):
        out = fast(first, second, iters=2)
    assert events == [
        *("run", "cpu begins", "pool", "side waits for main", "side begins", "run", "side ends"),
        *("main waits for side", "record in pool on side thread_local begins", "run"),
        *("record in pool on side thread_local ends", "cpu ends", "replay"),
    ]
    assert torch.equal(out.flow, plain(first, second).flow)
    assert out.extra == {"iters": 2}
    given = asked[2]
    assert all(a is b for a, b in zip(asked[1], given, strict=True))
    assert not any(a is b for a, b in zip(given, (first, second), strict=True))
    events.clear()
    again = fast(second, first, iters=2)
    assert events == ["replay"]
    assert torch.equal(given[0], second)
    assert torch.equal(given[1], first)
    assert torch.equal(again.flow, out.flow)
    again.flow.zero_()  # the caller's own: the next call is not harmed
    assert torch.equal(fast(second, first, iters=2).flow, out.flow)
    for _ in range(2):
        fast(first, second)
    assert events.count("pool") == 0, "graphs share their memory"


def test_a_network_that_cannot_be_captured_is_told_once(monkeypatch, caplog):
    pretend_cuda(monkeypatch)
    pair = frames(h=8, w=8)
    for error, words in (
        (RuntimeError("it waits\nfor the host"), "it waits"),
        (torch.OutOfMemoryError("full"), None),
    ):
        fast, calls = with_graphs(), []
        plain = fast._run

        def run(*tensors, plain=plain, calls=calls, error=error):
            calls.append(tensors)
            if len(calls) == 3:  # once alone, once to warm up
                raise error
            return plain(*tensors)

        monkeypatch.setattr(fast, "_run", run)
        fast(*pair)
        caplog.clear()
        if words is None:
            with pytest.raises(torch.OutOfMemoryError, match="full"):
                fast(*pair)
            assert (fast.graphs, caplog.messages) == (True, [])
        else:
            assert torch.equal(fast(*pair).flow, plain(*pair).flow)
            assert caplog.messages == [f"no CUDA graph, so prediction is slower: {words}"]
            assert fast.graphs is False
            fast(*pair)
            assert len(calls) == 5


def test_a_graph_takes_as_many_tensors_as_it_was_recorded_with():
    done = []
    place = SimpleNamespace(copy_=lambda *given, **more: done.append((given, more)))
    graph = _Graph(SimpleNamespace(replay=lambda: done.append("replay")), (place,), None)
    assert graph(("tensor",)) is None
    assert done == [(("tensor",), {"non_blocking": True}), "replay"]
    with pytest.raises(ValueError, match="longer"):
        graph(("tensor", "more"))


def test_every_tensor_of_an_output_is_copied():
    def tensor(value):
        return torch.full((1, 2, 2, 3), value).permute(0, 2, 3, 1)

    given = FlowOutput(
        flow=tensor(1.0),
        flows=(tensor(2.0), tensor(3.0)),
        extra={"a": tensor(4.0), "b": [tensor(5.0), 7], "c": "word", "d": None},
    )
    copied = _copied(given)
    assert type(copied) is FlowOutput
    assert (copied.low, copied.extra["c"], copied.extra["d"]) == (given.low, "word", None)
    assert (type(copied.flows), type(copied.extra["b"])) == (tuple, list)
    assert copied.extra["b"][1] == 7
    own = (copied.flow, *copied.flows, copied.extra["a"], copied.extra["b"][0])
    theirs = (given.flow, *given.flows, given.extra["a"], given.extra["b"][0])
    for one, other in zip(own, theirs, strict=True):
        assert torch.equal(one, other)
        assert one.data_ptr() != other.data_ptr()
        assert one.is_contiguous()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["raft-small", "raft-large", "vcn-small"])
def test_graphs_give_what_the_network_gives(name):
    model = network(name).cuda() if "raft" in name else lcv.build(name).eval().cuda()
    fast = Prepared(model, keep=2)
    assert fast.precision == ("fp16" if "raft" in name else "float32")
    options = {"iters": 3} if "raft" in name else {}
    sizes = ((1, 128, 192), (2, 136, 128), (1, 128, 192), (1, 192, 128), (2, 136, 128))
    for b, h, w in sizes:
        first, second = (frame.cuda() for frame in frames(b, h, w))
        with torch.no_grad():
            plain = model(first, second, **options).flow
        out = fast(first, second, **options).flow
        again = fast(second, first, **options).flow
        assert (out - plain).norm(dim=1).mean() < 0.05
        assert torch.equal(out, fast(first, second, **options).flow)
        assert not torch.equal(out, again)
    assert fast.graphs
    assert len(fast._kept) == 2

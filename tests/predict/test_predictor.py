"""A predictor is its network, called on frames of any kind, with what follows from the flow."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import lcv
from lcv.cost_volume.warp import warp
from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError, ShapeError, WeightsError
from lcv.losses.occlusion import occluded_by_consistency
from lcv.predict import pending
from lcv.predict.frames import Frame, pinned
from lcv.predict.matching import Wanted, matcher_for
from lcv.predict.pending import Pending
from lcv.predict.predictor import Predictor
from testing.painted import painted_pair
from testing.shared import shared
from testing.streams import pretend_cuda

NETWORKS = ("raft-small", "raft-large", "vcn-small", "ddflow")


def tensors_of(model: torch.nn.Module) -> set[str]:
    """The names of all tensors that a network holds, registered or not."""
    return {
        f"{name}.{key}"
        for name, module in model.named_modules()
        for home in (vars(module), module._parameters, module._buffers)
        for key, value in home.items()
        if isinstance(value, torch.Tensor)
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_the_flow_is_the_networks_own(make, frames, name):
    predictor = make(name)
    model = predictor.model
    had = tensors_of(model)
    options = {"iters": 2} if name.startswith("raft") else {}
    with torch.no_grad():
        flow = model(frames[0][None], frames[1][None], **options).flow
        back = model(frames[1][None], frames[0][None], **options).flow
    result = predictor(frames[0], frames[1], backward=True)
    assert result.flow.shape == (96, 136, 2)
    assert result.flow.dtype == np.float32
    assert np.array_equal(result.flow, flow[0].permute(1, 2, 0).numpy())
    # DDFlow has both directions as one batch, where rows of a product may be summed in another
    # order than alone; the others run the very same operations.
    slack = 1e-3 if name == "ddflow" else 0.0
    assert np.abs(result.backward - back[0].permute(1, 2, 0).numpy()).max() <= slack
    assert result.occluded is None
    assert result.warp_error is None
    assert tensors_of(model) == had


def test_padding_and_iterations_are_passed_on(make):
    one, two, _ = painted_pair(93, 131)
    with torch.no_grad():
        for pad, iters in (("kitti", 1), ("sintel", 3)):
            predictor = make(pad=pad, iters=iters)
            flow = predictor.model(one, two, pad=pad, iters=iters).flow
            assert np.array_equal(predictor(one, two).flow, flow[0].permute(1, 2, 0).numpy())


def test_all_kinds_of_frames_give_one_flow(make, tmp_path):
    rng = np.random.default_rng(0)
    pair = rng.integers(0, 256, (2, 64, 72, 3), dtype=np.uint8)
    for k in range(2):
        write_image(tmp_path / f"{k}.png", pair[k])
    predictor = make(iters=1)
    wanted = predictor(pair[0], pair[1]).flow
    tensors = torch.from_numpy(pair).movedim(3, 1)
    deep = pair.astype(np.uint16) * 257
    for first, second in (
        (tmp_path / "0.png", str(tmp_path / "1.png")),
        (tensors[0], tensors[1][None].float()),
        (deep[0], deep[1]),
        (Image.fromarray(pair[0]), Image.fromarray(pair[1]).convert("RGBA")),
    ):
        assert np.array_equal(predictor(first, second).flow, wanted)
    grey = [Image.fromarray(each[:, :, 0]) for each in deep]
    assert grey[0].mode == "I;16"
    assert np.array_equal(predictor(*grey).flow, predictor(*pair[..., 0]).flow)


@pytest.mark.parametrize("name", ["raft-small", "ddflow"])
def test_occlusion_and_warp_error_follow_from_the_flows(make, frames, name):
    result = make(name)(frames[0], frames[1], backward=True, occlusion=True, warp_error=True)
    there, back = (
        torch.from_numpy(flow).permute(2, 0, 1)[None] for flow in (result.flow, result.backward)
    )
    occluded, _ = occluded_by_consistency(there, back)
    assert result.occluded.shape == (96, 136)
    assert result.occluded.dtype == bool
    assert np.array_equal(result.occluded, occluded[0, 0].numpy())
    difference = (frames[0][None] - warp(frames[1][None], there)).abs().mean(1)[0].numpy()
    seen = ~np.isnan(result.warp_error)
    assert 0 < seen.mean() < 1
    assert np.array_equal(result.warp_error[seen], difference[seen])


def test_what_was_not_asked_is_not_there(make, frames):
    result = make()(frames[0], frames[1], occlusion=True)
    assert result.occluded is not None
    assert result.backward is None
    assert result.warp_error is None


def test_all_pairs_and_on_demand_agree():
    one, two, _ = painted_pair(128, 184)
    flows = [
        Predictor("raft-small", device="cpu", iters=12, strategy=strategy)(one, two).flow
        for strategy in ("all-pairs", "on-demand")
    ]
    assert np.linalg.norm(flows[0] - flows[1], axis=2).max() < 1e-3


def test_bf16_is_near(make, frames):
    predictor = make(precision="bf16", iters=1)
    exact = make(iters=1)(frames[0], frames[1]).flow
    near = predictor(frames[0], frames[1]).flow
    assert near.dtype == np.float32
    assert not np.array_equal(near, exact)
    # Eight bits of mantissa through some twenty layers: a few percent of the flow's size.
    assert np.abs(near - exact).mean() < 0.1 * np.abs(exact).mean() + 0.1


def test_a_callers_modes_do_not_matter(make, frames):
    predictor = make(iters=1)
    wanted = predictor(frames[0], frames[1]).flow
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert np.array_equal(make(iters=1)(frames[0], frames[1]).flow, wanted)
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iters": 0}, "iters is 0, wanted a whole number of at least 1"),
        ({"iters": 1.5}, "iters is 1.5, wanted a whole number"),
        ({"pad": "chairs"}, "pad: unknown mode 'chairs'; the modes are sintel, kitti"),
        ({"strategy": "best"}, "unknown strategy 'best' for raft-small; there are auto, all-pairs"),
        ({"precision": "fp8"}, "unknown precision 'fp8'; there are auto, float32, bf16, fp16"),
        ({"precision": "fp16"}, "precision 'fp16' needs a GPU, not cpu; use bf16"),
        ({"max_memory": "much"}, "max_memory is 'much', wanted a number of bytes or a text"),
        ({"device": "tpu"}, "device 'tpu' cannot be used"),
        ({"weights": "x.pth"}, "`weights` cannot be given with a network object"),
    ],
)
def test_refused_settings(make, options, message):
    with pytest.raises(ArgumentError, match=message):
        Predictor(make().model, **{"device": "cpu", **options})


def test_settings_that_a_network_does_not_take(make):
    for name, option in (("vcn-small", {"iters": 3}), ("ddflow", {"pad": "sintel"})):
        with pytest.raises(ArgumentError, match=r"takes no `(iters|pad)`"):
            make(name, **option)
    with pytest.raises(ArgumentError, match="there are auto, local"):
        make("ddflow", strategy="tiles")
    with pytest.raises(
        ArgumentError,
        match="the model is of class Linear, and how to call it is not known. Wrap it",
    ):
        Predictor(torch.nn.Linear(2, 2))
    with pytest.raises(ArgumentError, match="unknown model 'raft'"):
        Predictor("raft")
    with pytest.raises((ArgumentError, WeightsError)):
        Predictor("raft-small", weights=shared("weights", "raft-sintel.pth"))


@pytest.mark.parametrize(("name", "least"), [("raft-small", 57), ("vcn-small", 65), ("ddflow", 5)])
def test_the_least_size_is_the_networks_own(make, name, least):
    predictor = make(name)
    one, two, _ = painted_pair(least, least + 3)
    assert predictor(one, two).flow.shape == (least, least + 3, 2)
    small = one[:, :, :-1]
    message = rf"frame1 is {least + 3}×{least - 1} pixels; {name} needs at least {least}×{least}"
    with pytest.raises(ShapeError, match=message):
        predictor(small, small)
    with pytest.raises(lcv.LcvError):
        predictor.model(small, small)


def test_frames_of_different_size_are_refused(make, frames):
    with pytest.raises(ShapeError, match="frame1 is 136×96 pixels and frame2 is 135×96"):
        make()(frames[0], frames[1][:, :, 1:])


def test_half_precision_by_the_prepared_network(make, frames):
    """What a GPU runs in graphs, here without: near float32, and streams still equal pairs."""
    exact, fast = make(iters=2), make(iters=2)
    fast.matcher = dataclasses.replace(fast.matcher, half="bf16")
    flow = fast(frames[0], frames[1]).flow
    assert 0 < np.abs(flow - exact(frames[0], frames[1]).flow).mean() < 0.05
    streamed = [result.flow for result in fast.stream(frames)]
    assert np.array_equal(streamed[0], flow)
    assert list(fast.matcher.prepared) == ["all-pairs"]


@pytest.mark.gpu
def test_copies_that_the_gpu_fetches_are_equal_in_every_layout():
    rgb = torch.randint(0, 255, (3, 20, 30), dtype=torch.uint8)
    for image in (
        rgb[None],
        rgb.permute(1, 2, 0).contiguous().permute(2, 0, 1)[None],
        rgb[None, :1].expand(1, 3, -1, -1),
        rgb[None, :, 3:, ::2],
        rgb[None] / 3,
    ):
        copy = pinned(image)
        assert copy.is_pinned()
        assert copy.dtype == image.dtype
        assert torch.equal(copy, image)


@pytest.mark.gpu
def test_on_a_gpu_raft_is_prepared_without_being_asked(frames):
    fast, exact = (Predictor("raft-small", iters=8, precision=p) for p in ("auto", "float32"))
    assert (fast.precision, exact.precision) == ("fp16", "float32")
    pairs = [fast(a, b).flow for a, b in itertools.pairwise(frames)]
    streamed = [result.flow for result in fast.stream(frames)]  # by now in a graph
    for one, other, a, b in zip(pairs, streamed, frames[:-1], frames[1:], strict=True):
        assert np.array_equal(one, other)
        assert np.abs(one - exact(a, b).flow).mean() < 0.05


@pytest.mark.parametrize("fitting", [0, 1, 2, 3])
def test_a_pair_for_which_the_memory_is_too_small_is_computed_by_the_next_strategy(fitting):
    tried, forgotten, bare = [], [], object.__new__(Predictor)
    plans = [SimpleNamespace(strategy=name) for name in ("all-pairs", "on-demand", "tiles")]
    bare.planner = SimpleNamespace(
        plan=lambda *asked: {(5, 7, "wanted"): plans[0]}[asked],
        instead_of=lambda *asked: {(id(plans[0]), "wanted"): plans[1:]}[id(asked[0]), asked[1]],
    )
    prepared = {
        name: SimpleNamespace(forget=lambda name=name: forgotten.append(name)) for name in "ab"
    }
    bare.matcher = SimpleNamespace(prepared=prepared)

    def match(plan, first, second, wanted, start, notes):
        tried.append(plan)
        if len(tried) <= fitting:
            raise torch.OutOfMemoryError(f"attempt {len(tried)}")
        return first.image.shape, second, wanted, start, notes

    bare._match = match
    first = SimpleNamespace(image=torch.zeros(1, 3, 5, 7))
    given = (first, "second", "wanted", "start", ("said",))
    if fitting == 3:
        with pytest.raises(torch.OutOfMemoryError, match="^attempt 3$"):
            bare.match(*given)
    else:
        fallen = [f"out of memory, so computed by {plan.strategy}" for plan in plans[1:]]
        notes = ("said", *fallen[:fitting])
        assert bare.match(*given) == (first.image.shape, "second", "wanted", "start", notes)
        assert tried == plans[: fitting + 1]
    assert forgotten == ["a", "b"] * fitting


def test_a_result_is_copied_on_a_stream_that_waits_for_what_was_computed(monkeypatch):
    events = pretend_cuda(monkeypatch)
    monkeypatch.setattr(pending, "_on_its_way", lambda x: events.append(f"copy {x}") or x)
    maps, copied = pending.fetched({"flow": "a", "backward": "b"}, torch.device("cuda"))
    assert maps == {"flow": "a", "backward": "b"}
    assert copied == "an event of side"
    assert events == [
        *("side waits for main", "side begins", "copy a", "copy b", "side ends"),
        "side records",
    ]


def test_a_result_is_waited_for_and_lent_only_where_it_was_asked_for():
    class Event:
        def synchronize(self):
            flow.fill_(3.0)

    bare, flow = object.__new__(Pending), torch.zeros(2, 3, 2)
    bare.maps, bare.plan, bare.notes, bare._copied = {"flow": flow}, None, (), Event()
    own, lent = bare.result(), bare.result(lent=True)
    flow.fill_(5.0)
    assert own.flow.tolist() == torch.full((2, 3, 2), 3.0).tolist()
    assert lent.flow.tolist() == flow.tolist()


@pytest.mark.gpu
def test_pairs_under_way_on_a_gpu_keep_their_own_flow():
    predictor = Predictor("raft-small", iters=2, device="cuda")
    frames = [
        Frame(image, f"frame {i}") for i, image in enumerate(255 * torch.rand(9, 1, 3, 128, 160))
    ]
    taken = [predictor.take(frame) for frame in frames]
    alone = [predictor.match(a, b, Wanted()).result().flow for a, b in itertools.pairwise(taken)]
    under_way = [predictor.match(a, b, Wanted()) for a, b in itertools.pairwise(taken)]
    lent = [each.result(lent=True).flow for each in under_way]
    for flow, expected in zip(lent, alone, strict=True):
        assert np.array_equal(flow, expected)
        assert torch.from_numpy(flow).is_pinned()
        assert not torch.from_numpy(expected).is_pinned()


def test_what_is_no_network_is_refused():
    with pytest.raises(ArgumentError, match="^model is a int, wanted a name or a network$"):
        Predictor(3)
    with pytest.raises(ArgumentError, match=r"^mine is a Linear; pass it to lcv\.wrap first$"):
        matcher_for(torch.nn.Linear(1, 1), "mine", None, None)

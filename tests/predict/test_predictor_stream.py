"""A stream is the pairs one after the other, with less work; a warm start is one iteration's gain."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.errors import ArgumentError, ShapeError
from lcv.predict.predictor import Stream
from testing.painted import painted_pair, texture

ALL = {"backward": True, "occlusion": True, "warp_error": True}


def count_calls(*modules: torch.nn.Module):
    """Counters of the calls of modules, and what takes them off again."""
    counts = [0] * len(modules)

    def hook(k: int):
        def count(*_) -> None:
            counts[k] += 1

        return count

    handles = [module.register_forward_hook(hook(k)) for k, module in enumerate(modules)]
    return counts, lambda: [handle.remove() for handle in handles]


def assert_same(one, other):
    for name in ("flow", "backward", "occluded", "warp_error"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(a, b, equal_nan=a.dtype != bool)


@pytest.mark.parametrize("name", ["raft-small", "vcn-small", "ddflow"])
@pytest.mark.parametrize("wanted", [{}, ALL], ids=["flow", "all"])
def test_a_stream_is_its_pairs_to_the_last_bit(make, frames, name, wanted):
    predictor = make(name)
    streamed = list(predictor.stream(frames, **wanted))
    assert len(streamed) == len(frames) - 1
    for result, first, second in zip(streamed, frames, frames[1:], strict=False):
        assert_same(result, predictor(first, second, **wanted))


@pytest.mark.parametrize("backward", [False, True])
def test_raft_encodes_each_frame_once(make, frames, backward):
    predictor = make()
    counts, take_off = count_calls(predictor.model.fnet, predictor.model.cnet)
    list(predictor.stream(frames, backward=backward))
    take_off()
    assert counts == [len(frames)] * 2


@pytest.mark.parametrize("name", ["vcn-small", "ddflow"])
def test_the_others_encode_each_frame_once(make, frames, name):
    predictor = make(name)
    counts, take_off = count_calls(predictor.model.pyramid)
    list(predictor.stream(frames))
    take_off()
    assert counts == [len(frames)]


def test_vcn_with_two_means_encodes_a_frame_by_its_role(make, frames):
    predictor = make("vcn-small")
    mean = predictor.model.mean2.clone()
    try:
        predictor.model.mean2 += 0.1
        unlike = make("vcn-small")
        with torch.no_grad():
            flow = unlike.model(frames[1][None], frames[2][None]).flow[0].permute(1, 2, 0).numpy()
        assert np.array_equal(list(unlike.stream(frames[:3]))[1].flow, flow)
    finally:
        predictor.model.mean2.copy_(mean)


def test_a_warm_start_begins_where_the_last_pair_ended(make):
    # Frames of one scene, so that no cut intervenes.
    film = [painted_pair(96, 136)[k][0] for k in (0, 1, 0)]
    predictor = make(iters=2)
    cold = list(predictor.stream(film))
    warm = list(predictor.stream(film, warm_start=True))
    assert_same(warm[0], cold[0])
    with torch.no_grad():
        low = predictor.model(film[0][None], film[1][None], iters=2).low
        start = forward_interpolate(low)
        flow = predictor.model(film[1][None], film[2][None], iters=2, flow_init=start).flow
    assert np.array_equal(warm[1].flow, flow[0].permute(1, 2, 0).numpy())
    assert not np.array_equal(warm[1].flow, cold[1].flow)


def test_a_scene_cut_resets_the_warm_start(make):
    one = [painted_pair(96, 136)[k][0] for k in (0, 1)]
    other = [255 - texture(96, 136, seed=9)[0] / 3 for _ in range(2)]
    predictor = make(iters=1)
    cold = list(predictor.stream([*one, *other]))
    warm = list(predictor.stream([*one, *other], warm_start=True))
    assert "scene cut" in " ".join(warm[1].notes)
    assert warm[2].notes == ()
    assert_same(warm[1], cold[1])
    assert not np.array_equal(warm[2].flow, cold[2].flow)
    # And a new stream starts cold, whatever was before it.
    assert_same(next(predictor.stream(one, warm_start=True)), cold[0])


def test_a_bad_frame_breaks_the_stream_and_no_pair_spans_the_gap(make, frames):
    predictor = make(iters=1)
    stream = Stream(predictor)
    assert stream.push(frames[0]) is None
    with pytest.raises(ShapeError, match="frame1 is|frame 1 is 136×96 .* frame 2 is 100×96"):
        stream.push(frames[1][:, :, :100])
    assert stream.push(frames[1]) is None
    assert_same(stream.push(frames[2]), predictor(frames[1], frames[2]))
    stream.reset()
    assert stream.push(frames[3]) is None


def test_frames_that_differ_are_both_named_even_where_one_is_too_small(make, frames):
    stream = make().stream([frames[0], frames[0][:, :30, :40]])
    with pytest.raises(ShapeError, match="frame 1 is 136×96 pixels and frame 2 is 40×30"):
        list(stream)


def test_a_decoder_may_fill_one_buffer_again_and_again(make, frames):
    predictor = make(iters=1)

    def from_one_buffer():
        buffer = torch.empty_like(frames[0])
        for frame in frames:
            yield buffer.copy_(frame)

    for got, wanted in zip(
        predictor.stream(from_one_buffer(), warp_error=True),
        predictor.stream(frames, warp_error=True),
        strict=True,
    ):
        assert_same(got, wanted)


def test_a_stream_leaves_the_callers_modes_alone(make, frames):
    for _ in make(iters=1).stream(frames[:3]):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_a_warm_start_of_a_network_without_one_is_refused_at_once(make):
    with pytest.raises(ArgumentError, match="ddflow takes no flow to start from"):
        make("ddflow").stream([], warm_start=True)

"""With `max_side` a flow is that of smaller frames, enlarged with its vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lcv.cost_volume.resize import resize_flow
from lcv.errors import ArgumentError, FileError, ShapeError
from lcv.predict.matching import Flows
from lcv.predict.reduced import enlarged, reduced, reduced_size
from predict.small_jobs import run


@given(h=st.integers(1, 5000), w=st.integers(1, 5000), most=st.integers(1, 6000))
def test_the_longer_side_is_at_most_max_side(h, w, most):
    small = reduced_size(h, w, most)
    assert max(small) == min(max(h, w), most)
    assert reduced_size(*small, most) == small
    for full, side in zip((h, w), small, strict=True):
        assert side == max(1, round(full * max(small) / max(h, w)))


def test_the_flow_is_that_of_the_smaller_frames_enlarged(make, frames):
    """All four outputs, from a pair and from a stream; (96, 136) is computed as (64, 91)."""
    wanted = {"backward": True, "occlusion": True, "warp_error": True}
    small = make()(*(reduced(frame[None], (64, 91)) for frame in frames[:2]), **wanted)
    predictor = make(max_side=91)
    assert (plan := predictor.plan(96, 136)).width == 91
    assert plan.height == 64
    for result in (
        predictor(*frames[:2], **wanted),
        next(predictor.stream(frames[:2], warm_start=True, **wanted)),
    ):
        for found, computed in ((result.flow, small.flow), (result.backward, small.backward)):
            low = torch.from_numpy(np.ascontiguousarray(computed)).movedim(2, 0)[None]
            full = resize_flow(low, (96, 136), align_corners=False)[0].movedim(0, 2)
            assert np.array_equal(found, full.numpy())
        assert result.occluded.shape == result.warp_error.shape == (96, 136)
        assert result.occluded.dtype == bool
        assert {*result.occluded.ravel()} <= {*small.occluded.ravel()}


def test_frames_that_are_small_enough_are_left_alone(make, frames):
    assert np.array_equal(make(max_side=136)(*frames[:2]).flow, make()(*frames[:2]).flow)


def test_reducing_averages():
    image = torch.arange(16, dtype=torch.uint8).reshape(1, 1, 4, 4).expand(1, 3, 4, 4) * 16
    small = reduced(image, (2, 2))
    assert small.dtype == torch.uint8
    assert abs(float(small.float().mean()) - float(image.float().mean())) <= 1


@pytest.mark.parametrize("side", [0, -3, 2.5, True])
def test_a_side_that_is_none(make, side):
    make(max_side=1)
    with pytest.raises(ArgumentError, match="max_side is"):
        make(max_side=side)


def test_frames_that_become_too_small(make, frames):
    with pytest.raises(
        ShapeError, match=r"frame1 is 40×28 pixels, reduced by max_side=40; .*larger"
    ):
        make(max_side=40)(*frames[:2])


def test_a_job_with_another_max_side_is_another_job(make, walk, tmp_path):
    run(make(max_side=64), walk, tmp_path / "out", frames=2)
    with pytest.raises(FileError, match="max_side was 64, and is None now"):
        run(make(), walk, tmp_path / "out", frames=2)


def test_all_that_goes_with_a_flow_is_enlarged():
    """Vectors grow with the image, maps are repeated, and what is not there stays away."""
    flow = torch.full((1, 2, 2, 3), 1.5)
    occluded = torch.tensor([[[[True, False, True], [False, True, False]]]])
    error = torch.arange(6.0).reshape(1, 1, 2, 3)
    found = enlarged(Flows(flow, flow, 2 * flow, occluded, error), (6, 6))
    wanted = torch.tensor([3.0, 4.5])[None, :, None, None].expand(1, 2, 6, 6)
    assert torch.equal(found.flow, wanted)
    assert torch.equal(found.backward, 2 * wanted)
    assert found.low is flow
    for large, small in ((found.occluded, occluded), (found.warp_error, error)):
        assert large.dtype == small.dtype
        assert torch.equal(large, small.repeat_interleave(3, 2).repeat_interleave(2, 3))
    assert enlarged(Flows(flow, None, None, None, None), (6, 6))[1:] == (None, None, None, None)

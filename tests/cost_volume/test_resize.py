"""Resizing: a flow's values are lengths, each component in its own unit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lcv.cost_volume import resize, resize_flow
from lcv.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("align_corners", [True, False])
def test_a_constant_flow_scales_by_component(align_corners: bool) -> None:
    flow = torch.tensor([3.0, 5.0]).view(1, 2, 1, 1).expand(2, 2, 4, 6)
    out = resize_flow(flow, (6, 24), align_corners=align_corners)
    assert out.shape == (2, 2, 6, 24)
    torch.testing.assert_close(out[:, 0], torch.full((2, 6, 24), 12.0))  # 24/6 as wide
    torch.testing.assert_close(out[:, 1], torch.full((2, 6, 24), 7.5))  # 6/4 as high


@pytest.mark.parametrize("align_corners", [True, False])
def test_the_same_size_is_the_identity(align_corners: bool) -> None:
    flow = torch.randn(1, 2, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(resize_flow(flow, (5, 7), align_corners=align_corners), flow)


def test_corners_stay_where_they_are_when_aligned() -> None:
    x = torch.randn(1, 3, 4, 5, dtype=torch.float64)
    out = resize(x, (9, 11), align_corners=True)
    torch.testing.assert_close(
        out[..., [0, 0, -1, -1], [0, -1, 0, -1]], x[..., [0, 0, -1, -1], [0, -1, 0, -1]]
    )


def test_halving_unaligned_averages_pairs() -> None:
    x = torch.randn(1, 3, 4, 6, dtype=torch.float64)
    torch.testing.assert_close(resize(x, (2, 3), align_corners=False), F.avg_pool2d(x, 2))


@pytest.mark.parametrize("align_corners", [True, False])
def test_gradients(align_corners: bool) -> None:
    flow = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda f: resize_flow(f, (5, 7), align_corners=align_corners), (flow,)
    )


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"resize: size is \(0, 3\), wanted \(h, w\)"):
        resize(torch.zeros(1, 1, 2, 2), (0, 3), align_corners=True)
    for size in ((3, 0), (3,), (3, 3, 3)):
        with pytest.raises(ArgumentError, match=r"resize_flow: size is \(3"):
            resize_flow(torch.zeros(1, 2, 2, 2), size, align_corners=True)
    assert resize_flow(torch.ones(1, 2, 2, 4), (1, 1), align_corners=False).flatten().tolist() == [
        0.25,
        0.5,
    ]
    with pytest.raises(ShapeError, match=r"resize_flow: flow \(1,3,2,2\) has 3 where 2 belongs"):
        resize_flow(torch.zeros(1, 3, 2, 2), (4, 4), align_corners=True)

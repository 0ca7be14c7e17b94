"""Warps and masks: direction, border, DDFlow's clamped neighbours, gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lcv.cost_volume import in_view, pixel_grid, warp, warp_clamped
from lcv.cost_volume.warp import warp_error
from lcv.errors import ShapeError
from testing.painted import painted_pair


def _flow(x: float, y: float, h: int, w: int) -> Tensor:
    return torch.tensor([x, y], dtype=torch.float64).view(1, 2, 1, 1).expand(1, 2, h, w)


def test_zero_flow_is_the_identity() -> None:
    x = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    torch.testing.assert_close(warp(x, x.new_zeros(2, 2, 4, 7)), x)


def test_the_warp_reads_where_the_flow_points() -> None:
    x = torch.arange(12.0, dtype=torch.float64).view(1, 1, 3, 4)
    expected = [[6, 7, 0, 0], [10, 11, 0, 0], [0, 0, 0, 0]]
    out = warp(x, _flow(2, 1, 3, 4))
    torch.testing.assert_close(out[0, 0], torch.tensor(expected, dtype=torch.float64))


def test_the_mask_counts_the_border_in_unless_strict() -> None:
    zero = _flow(0, 0, 3, 4)
    assert in_view(zero).all()
    expected = [[False] * 4, [False, True, True, False], [False] * 4]
    assert in_view(zero, strict=True)[0, 0].tolist() == expected


def test_the_mask_follows_the_flow() -> None:
    expected = [[True, True, False, False], [True, True, False, False], [False] * 4]
    assert in_view(_flow(2, 1, 3, 4))[0, 0].tolist() == expected
    assert in_view(_flow(0, 0, 3, 4)).shape == (1, 1, 3, 4)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("little", [0.01, 2.0**-20])
def test_a_target_a_little_outside_is_out_of_view(little: float, strict: bool) -> None:
    """Targets are not rounded, neither to whole pixels nor to decimals: 2⁻²⁰ is four float32
    roundings of the last column."""
    outward, border = _outward(3, 4)
    seen = in_view(little * outward, strict=strict)[0, 0]
    assert not seen[border].any()
    just_inside = in_view(-little * outward, strict=strict)[0, 0]
    assert just_inside[border].all()


def _outward(h: int, w: int) -> tuple[Tensor, tuple[list[int], list[int]]]:
    """A float32 flow of 1 px out of view at a pixel of each border, 0 elsewhere; their rows and
    columns."""
    flow = torch.zeros(1, 2, h, w)
    flow[0, 0, 1, 0], flow[0, 0, 1, -1] = -1, 1
    flow[0, 1, 0, 1], flow[0, 1, -1, 1] = -1, 1
    return flow, ([1, 1, 0, h - 1], [0, w - 1, 1, 1])


@pytest.mark.parametrize("axis", [-1, -2])
def test_flipping_map_and_flow_flips_the_warp(axis: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    flow = 3 * torch.randn(2, 2, 5, 8, dtype=torch.float64)
    sign = torch.tensor([-1.0, 1.0] if axis == -1 else [1.0, -1.0], dtype=torch.float64)
    flipped = sign.view(2, 1, 1) * flow.flip(axis)
    torch.testing.assert_close(warp(x.flip(axis), flipped), warp(x, flow).flip(axis))
    assert torch.equal(in_view(flipped), in_view(flow).flip(axis))


def _tensorflow_warp(x: Tensor, flow: Tensor) -> Tensor:
    """DDFlow's rule, one pixel at a time."""
    out = torch.zeros_like(x)
    h, w = x.shape[-2:]
    for b in range(x.shape[0]):
        for row in range(h):
            for column in range(w):
                px = column + flow[b, 0, row, column].item()
                py = row + flow[b, 1, row, column].item()
                x0, y0 = math.trunc(px), math.trunc(py)
                x1, y1 = min(max(x0 + 1, 0), w - 1), min(max(y0 + 1, 0), h - 1)
                x0, y0 = min(max(x0, 0), w - 1), min(max(y0, 0), h - 1)
                out[b, :, row, column] = (
                    (x1 - px) * (y1 - py) * x[b, :, y0, x0]
                    + (x1 - px) * (py - y0) * x[b, :, y1, x0]
                    + (px - x0) * (y1 - py) * x[b, :, y0, x1]
                    + (px - x0) * (py - y0) * x[b, :, y1, x1]
                )
    return out


def test_clamped_warp_follows_the_rule_at_every_border() -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 5, 7, dtype=torch.float64)
    flow = 4 * torch.randn(2, 2, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(warp_clamped(x, flow), _tensorflow_warp(x, flow))


def test_clamped_warp_is_the_warp_inside() -> None:
    torch.manual_seed(2)
    x = torch.randn(1, 2, 5, 7, dtype=torch.float64)
    target = torch.rand(1, 2, 5, 7, dtype=torch.float64) * torch.tensor([6.0, 4.0]).view(2, 1, 1)
    flow = target - pixel_grid(5, 7, dtype=torch.float64)
    torch.testing.assert_close(warp_clamped(x, flow), warp(x, flow))


def test_clamped_warp_empties_the_last_row_and_column_even_under_zero_flow() -> None:
    x = torch.ones(1, 1, 3, 4)
    expected = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    assert warp_clamped(x, torch.zeros(1, 2, 3, 4))[0, 0].tolist() == expected


def test_clamped_warp_extrapolates_up_to_one_pixel_before_the_first() -> None:
    x = torch.tensor([5.0, 7.0, 0.0, 0.0], dtype=torch.float64).expand(1, 1, 3, 4)
    out = warp_clamped(x, _flow(-0.5, 0, 3, 4))
    assert out[0, 0, 0, 0].item() == 4.0  # 5 − (7 − 5)/2


@pytest.mark.parametrize("far", [9.0, -9.0, 1e30, -1e30, float("inf")])
def test_clamped_warp_is_exactly_zero_far_outside(far: float) -> None:
    x = torch.rand(1, 2, 3, 4)
    flow = torch.tensor([far, 0.3]).view(1, 2, 1, 1).expand(1, 2, 3, 4)
    assert warp_clamped(x, flow).eq(0).all()
    assert warp_clamped(x, flow.flip(1)).eq(0).all()


@pytest.mark.parametrize("operator", [warp, warp_clamped])
def test_gradients_of_map_and_flow(operator: object) -> None:
    torch.manual_seed(3)
    x = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    whole = torch.randint(-3, 4, (2, 2, 3, 4))
    flow = (whole + 0.1 + 0.8 * torch.rand(2, 2, 3, 4, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(operator, (x, flow))


@pytest.mark.parametrize("operator", [warp, warp_clamped])
def test_a_flow_of_another_size_is_refused(operator: object) -> None:
    with pytest.raises(ShapeError, match=r"flow has w=5 but x has w=4 .*resize_flow"):
        operator(torch.zeros(1, 1, 3, 4), torch.zeros(1, 2, 3, 5))  # type: ignore[operator]


def test_a_nan_in_the_flow_spoils_only_its_own_pixel():
    x = torch.rand(1, 2, 5, 7)
    flow = torch.zeros(1, 2, 5, 7)
    flow[0, 0, 2, 3] = torch.nan
    warped = warp_clamped(x, flow)
    assert torch.isnan(warped[0, :, 2, 3]).all()
    assert torch.isnan(warped).sum() == 2


def test_the_warp_error_of_the_truth_is_small_and_undefined_out_of_view():
    one, two, flow = painted_pair(96, 136)
    error = warp_error(one, two, flow)[0, 0]
    x = torch.arange(136) + flow[0, 0]
    y = torch.arange(96)[:, None] + flow[0, 1]
    beyond = torch.stack((-x, x - 135, -y, y - 95)).amax(0)  # pixels out of view, if positive
    assert error[beyond > 1e-3].isnan().all()
    seen = error[beyond <= 0]
    assert (beyond > 1e-3).any()
    assert seen.max() < 1e-3  # frame 1 is that warp, computed in the same float32
    assert warp_error(two, two, torch.zeros_like(flow)).max() < 1e-3


def test_the_warp_error_forgives_a_hair_outside_and_no_more():
    outward, border = _outward(3, 4)
    image = torch.full((1, 3, 3, 4), 100.0)
    assert warp_error(image, image, 1e-5 * outward).max() < 0.01, "a NaN is no maximum"
    unknown = warp_error(image, image, 2e-3 * outward)[0, 0].isnan()
    assert unknown[border].all()
    assert unknown.sum() == 4

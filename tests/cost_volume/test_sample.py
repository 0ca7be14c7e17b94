"""Bilinear reading at pixel coordinates: values, border, gradients, symmetries."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume import pixel_grid, sample
from lcv.errors import ShapeError
from testing.closeness import assert_as_exact_as


def _at(x: float, y: float) -> Tensor:
    return torch.tensor([x, y], dtype=torch.float64).view(1, 2, 1, 1)


RAMP = torch.tensor([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]], dtype=torch.float64)[None, None]


@pytest.mark.parametrize(
    ("x", "y", "value"),
    [
        (0, 0, 0.0),
        (2, 1, 12.0),
        (1.5, 0, 1.5),
        (1, 0.25, 3.5),
        (2.5, 1, 6.0),  # half of the last pixel, half of nothing
        (2, -0.75, 0.5),
        (-1, 0, 0.0),
        (3, 1, 0.0),
        (1, 2, 0.0),
    ],
)
def test_values_by_hand(x: float, y: float, value: float) -> None:
    assert sample(RAMP, _at(x, y)).item() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("size", [(4, 9), (9, 4)])
@pytest.mark.parametrize("far", [1e3, 1e30, float("inf"), -1e30, -float("inf")])
def test_far_outside_is_exactly_zero_and_flat(far: float, size: tuple[int, int]) -> None:
    x = torch.rand(1, 2, *size, requires_grad=True)
    for place in ([far, 1.0], [1.0, far], [far, -far]):
        coords = torch.tensor(place).view(1, 2, 1, 1).requires_grad_()
        out = sample(x, coords)
        assert out.eq(0).all()
        slopes = torch.autograd.grad(out.sum(), (coords, x))
        assert all(slope.eq(0).all() for slope in slopes)


def test_equals_grid_sample_with_aligned_corners() -> None:
    torch.manual_seed(0)
    h, w = 7, 12
    x = torch.randn(2, 3, h, w)
    coords = 16 * torch.rand(2, 2, 5, 6) - 2

    def aligned(x: Tensor, coords: Tensor) -> Tensor:
        grid = torch.stack((2 * coords[:, 0] / (w - 1) - 1, 2 * coords[:, 1] / (h - 1) - 1), -1)
        return F.grid_sample(x, grid, align_corners=True)

    truth = aligned(x.double(), coords.double())
    assert_as_exact_as(sample(x, coords), aligned(x, coords), truth)


@pytest.mark.parametrize("size", [(1, 1), (1, 4), (5, 1)])
def test_a_map_one_pixel_wide_is_no_special_case(size: tuple[int, int]) -> None:
    x = torch.rand(1, 2, *size, dtype=torch.float64)
    out = sample(x, pixel_grid(*size, dtype=torch.float64)[None])
    torch.testing.assert_close(out, x)


def test_half_floats_are_read_in_full_precision() -> None:
    x = torch.rand(1, 1, 3, 300).to(torch.bfloat16)
    coords = torch.tensor([257.0, 1.0]).view(1, 2, 1, 1)  # 257 is no bfloat16
    out = sample(x, coords)
    assert out.dtype == torch.bfloat16
    assert out.item() == x[0, 0, 1, 257].item()


def test_gradients_of_both_arguments() -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    # Fractions stay clear of 0, where a bilinear function has corners.
    whole = torch.randint(-2, 6, (2, 2, 3, 2))
    coords = (whole + 0.1 + 0.8 * torch.rand(2, 2, 3, 2, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(sample, (x, coords))


def test_mirroring_map_and_coords_mirrors_nothing() -> None:
    torch.manual_seed(2)
    x = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    coords = 8 * torch.rand(2, 2, 5, 6, dtype=torch.float64)
    mirrored = torch.stack((6 - coords[:, 0], coords[:, 1]), dim=1)
    torch.testing.assert_close(sample(x.flip(-1), mirrored), sample(x, coords))


def test_refusals() -> None:
    with pytest.raises(ShapeError, match=r"sample: coords \(1,3,4,5\) has 3 where 2 belongs"):
        sample(torch.zeros(1, 1, 4, 5), torch.zeros(1, 3, 4, 5))
    with pytest.raises(ShapeError, match="sample: coords has b=2 but x has b=1"):
        sample(torch.zeros(1, 1, 4, 5), torch.zeros(2, 2, 4, 5))

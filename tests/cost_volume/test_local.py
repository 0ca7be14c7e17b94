"""The local cost volume: values by hand, laws, gradients, and the fast path against the truth."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor

from lcv.cost_volume import local_cost_volume
from lcv.errors import ArgumentError, ShapeError
from testing.closeness import assert_as_exact_as

BACKENDS = ["reference", "torch"]
FORMS = [(keep, order) for keep in (False, True) for order in ("x_outer", "y_outer")]


def _pair(b: int, c: int, h: int, w: int, dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(c + h)
    return torch.randn(2, b, c, h, w, dtype=dtype)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_by_hand(backend: str) -> None:
    """A 2×3 map, a 5×3 window: f1 picks the pixel, f2 counts, so each cost names its target."""
    f1 = torch.tensor([[1.0, 10.0, 100.0], [1000.0, 1e4, 1e5]])[None, None]
    f2 = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])[None, None]
    out = local_cost_volume(f1, f2, (5, 3), scale=2.0, backend=backend)
    assert out.shape == (1, 5, 3, 2, 3)
    # Window of pixel (x=1, y=0): columns dx = −2 … 2 hold dy = −1, 0, 1.
    assert out[0, :, :, 0, 1].tolist() == [
        [0, 0, 0],
        [0, 20, 80],
        [0, 40, 100],
        [0, 60, 120],
        [0] * 3,
    ]
    # Offset dx = 1, dy = −1 seen by every pixel.
    assert out[0, 3, 0].tolist() == [[0, 0, 0], [4000.0, 6e4, 0]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("c", [1, 2, 3, 64, 256])
def test_kept_channels_sum_to_the_summed_volume(c: int, backend: str) -> None:
    f1, f2 = _pair(2, c, 5, 7)
    kept = local_cost_volume(f1, f2, (3, 5), keep_channels=True, backend=backend)
    assert kept.shape == (2, c, 3, 5, 5, 7)
    torch.testing.assert_close(kept.sum(1), local_cost_volume(f1, f2, (3, 5), backend=backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_y_outer_swaps_the_window_axes(backend: str) -> None:
    f1, f2 = _pair(2, 3, 5, 7)
    for keep in (False, True):
        x_outer = local_cost_volume(f1, f2, (3, 5), keep_channels=keep, backend=backend)
        y_outer = local_cost_volume(
            f1, f2, (3, 5), keep_channels=keep, order="y_outer", backend=backend
        )
        assert torch.equal(y_outer, x_outer.transpose(-4, -3))
        assert y_outer.is_contiguous()


@pytest.mark.parametrize("c", [1, 2, 3, 64, 256])
@pytest.mark.parametrize("size", [(5, 7), (9, 33), (3, 16)])
@pytest.mark.parametrize(("keep", "order"), FORMS)
def test_torch_equals_reference(c: int, size: tuple[int, int], keep: bool, order: str) -> None:
    f1, f2 = _pair(2, c, *size, dtype=torch.float32)
    options = {"scale": 0.3, "keep_channels": keep, "order": order}

    def run(f1: Tensor, f2: Tensor, backend: str) -> tuple[Tensor, ...]:
        f1, f2 = f1.clone().requires_grad_(), f2.clone().requires_grad_()
        out = local_cost_volume(f1, f2, (5, 3), backend=backend, **options)
        slope = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
        return out.detach(), *torch.autograd.grad(out, (f1, f2), slope)

    plain, fast = run(f1, f2, "reference"), run(f1, f2, "torch")
    truth = run(f1.double(), f2.double(), "reference")
    # A matrix product may add channels one after another, where torch's sum adds by halves.
    if c == 256 and not keep:
        one = (
            local_cost_volume(*pair, (5, 3), backend="reference", **options)
            for pair in zip(f1.split(1, 1), f2.split(1, 1), strict=True)
        )
        plain = (functools.reduce(torch.add, one), *plain[1:])
    for f, p, t in zip(fast, plain, truth, strict=True):
        assert f.shape == p.shape
        assert_as_exact_as(f, p, t)


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (17, 1)])
def test_torch_equals_reference_on_the_smallest_maps(size: tuple[int, int]) -> None:
    f1, f2 = _pair(1, 3, *size)
    fast = local_cost_volume(f1, f2, (5, 3), backend="torch")
    torch.testing.assert_close(fast, local_cost_volume(f1, f2, (5, 3), backend="reference"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("keep", "order"), FORMS)
def test_gradients(keep: bool, order: str, backend: str) -> None:
    f1, f2 = _pair(2, 2, 3, 4).requires_grad_().unbind()

    def volume(f1: Tensor, f2: Tensor) -> Tensor:
        return local_cost_volume(
            f1, f2, (5, 3), scale=0.7, keep_channels=keep, order=order, backend=backend
        )

    assert torch.autograd.gradcheck(volume, (f1, f2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_linear_in_f2(backend: str) -> None:
    f1, f2 = _pair(2, 3, 5, 7)
    other = torch.randn_like(f2)

    def volume(f2: Tensor) -> Tensor:
        return local_cost_volume(f1, f2, (5, 3), backend=backend)

    torch.testing.assert_close(volume(2 * f2 - other), 2 * volume(f2) - volume(other))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("axis", [-1, -2])
def test_flipping_both_maps_flips_map_and_window(axis: int, backend: str) -> None:
    f1, f2 = _pair(2, 3, 5, 7)
    flipped = local_cost_volume(f1.flip(axis), f2.flip(axis), (5, 3), backend=backend)
    window_axis = 1 if axis == -1 else 2
    straight = local_cost_volume(f1, f2, (5, 3), backend=backend)
    torch.testing.assert_close(flipped, straight.flip(axis, window_axis))


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_of_view_is_exactly_zero(backend: str) -> None:
    """A constant pair: each cost is 1 in view and 0 out of it, so the volume is its own mask."""
    ones = torch.ones(1, 1, 4, 6)
    out = local_cost_volume(ones, ones, (5, 3), backend=backend)
    for i, dx in enumerate(range(-2, 3)):
        for j, dy in enumerate(range(-1, 2)):
            for y in range(4):
                for x in range(6):
                    inside = 0 <= x + dx < 6 and 0 <= y + dy < 4
                    assert out[0, i, j, y, x] == inside


def test_refusals() -> None:
    x = torch.zeros(2, 3, 4, 5)
    with pytest.raises(ShapeError, match=r"local_cost_volume: f2 has h=6 but f1 has h=4 .* level"):
        local_cost_volume(x, torch.zeros(2, 3, 6, 5), (3, 3))
    with pytest.raises(ShapeError, match="f2 has c=1 but f1 has c=3"):
        local_cost_volume(x, torch.zeros(2, 1, 4, 5), (3, 3))
    with pytest.raises(ArgumentError, match="local_cost_volume: window has v=4"):
        local_cost_volume(x, x, (3, 4))
    with pytest.raises(ArgumentError, match="local_cost_volume: order is 'rows'"):
        local_cost_volume(x, x, (3, 3), order="rows")

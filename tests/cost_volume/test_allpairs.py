"""The all-pairs lookup: values by hand, order, border, laws; the fast path against the truth."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume import AllPairs, coords_from_flow, local_cost_volume, pixel_grid
from lcv.errors import ArgumentError, ShapeError
from testing.closeness import assert_as_exact_as

BACKENDS = ["reference", "torch"]


def _inputs(
    b: int, c: int, h: int, w: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Features, and coords in and around the map that stay clear of whole numbers at all levels."""
    torch.manual_seed(c + h + w)
    f1, f2 = torch.randn(2, b, c, h, w, dtype=dtype)
    spread = torch.tensor([w + 8.0, h + 8.0]).view(2, 1, 1)
    coords = (torch.rand(b, 2, h, w) * spread - 4).floor() + 0.1 + 0.8 * torch.rand(b, 2, h, w)
    return f1, f2, coords.to(dtype)


def _lookup(operator: AllPairs, f1: Tensor, f2: Tensor, coords: Tensor) -> Tensor:
    return operator.lookup(operator.build(f1, f2), coords)


def _with_gradients(operator: AllPairs, *inputs: Tensor) -> tuple[Tensor, ...]:
    leaves = [t.clone().requires_grad_() for t in inputs]
    out = _lookup(operator, *leaves)
    slope = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return out.detach(), *torch.autograd.grad(out, leaves, slope)


def _grid_sampled(
    f1: Tensor, f2: Tensor, coords: Tensor, levels: int, rx: int, ry: int, scale: float
) -> Tensor:
    """One grid_sample a level with aligned corners and zeros around; levels of 2 pixels or more."""
    b, _, h, w = f1.shape
    volume = scale * torch.einsum("bcij,bckl->bijkl", f1, f2).reshape(b * h * w, 1, h, w)
    dx = torch.arange(-rx, rx + 1, dtype=coords.dtype)
    dy = torch.arange(-ry, ry + 1, dtype=coords.dtype)
    offsets = torch.stack(torch.meshgrid(dx, dy, indexing="ij"), dim=-1)
    out = []
    for level in range(levels):
        h2, w2 = volume.shape[-2:]
        centres = coords.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2) / 2**level
        x, y = (centres + offsets).unbind(-1)
        grid = torch.stack((2 * x / (w2 - 1) - 1, 2 * y / (h2 - 1) - 1), dim=-1)
        out.append(F.grid_sample(volume, grid, align_corners=True).view(b, h, w, -1))
        volume = F.avg_pool2d(volume, 2)
    return torch.cat(out, dim=-1).permute(0, 3, 1, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_by_hand(backend: str) -> None:
    """f2 counts its pixels along rows of 4 and f1 is 1 at one pixel: costs name their targets."""
    f1 = torch.zeros(1, 1, 2, 4)
    f1[0, 0, 1, 2] = 1.0
    f2 = torch.arange(8.0).view(1, 1, 2, 4)
    coords = torch.zeros(1, 2, 2, 4)
    coords[0, :, 1, 2] = torch.tensor([1.5, 1.0])
    out = _lookup(AllPairs(2, (1, 2), 10.0, backend), f1, f2, coords)
    assert out.shape == (1, 2 * 3 * 5, 2, 4)
    fine, coarse = out[0, :, 1, 2].view(2, 3, 5)
    # Columns x = 0.5, 1.5, 2.5; rows y = −1 … 3; f2(x, y) = x + 4y on rows 0 and 1.
    assert fine.tolist() == [[0, 5, 45, 0, 0], [0, 15, 55, 0, 0], [0, 25, 65, 0, 0]]
    # Pooled: one row of two, 2.5 and 4.5. Centre (0.75, 0.5); columns x = −0.25, 0.75, 1.75;
    # rows y = −1.5, −0.5, 0.5, …, of which the second and third see half of row 0.
    by_column = [0.75 * 25, 0.25 * 25 + 0.75 * 45, 0.25 * 45]
    expected = [[0, 0.5 * value, 0.5 * value, 0, 0] for value in by_column]
    torch.testing.assert_close(coarse, torch.tensor(expected))
    assert out[0, :, 0, 0].eq(0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_at_whole_pixels_the_finest_level_is_the_local_volume(backend: str) -> None:
    f1, f2, _ = _inputs(2, 3, 5, 8)
    grid = pixel_grid(5, 8, dtype=torch.float64).expand(2, 2, 5, 8)
    out = _lookup(AllPairs(1, (3, 1), 0.5, backend), f1, f2, grid)
    local = local_cost_volume(f1, f2, (7, 3), scale=0.5)
    torch.testing.assert_close(out, local.flatten(1, 2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_equals_a_grid_sample_lookup(backend: str) -> None:
    f1, f2, coords = _inputs(2, 3, 9, 14)
    out = _lookup(AllPairs(3, (3, 2), 0.5, backend), f1, f2, coords)
    torch.testing.assert_close(out, _grid_sampled(f1, f2, coords, 3, 3, 2, 0.5))


@pytest.mark.parametrize("c", [1, 2, 3, 64, 256])
@pytest.mark.parametrize(
    ("size", "levels", "radius"),
    [((9, 13), 3, (2, 1)), ((8, 16), 4, (1, 3)), ((5, 6), 1, (0, 0)), ((11, 8), 2, (4, 4))],
)
def test_torch_equals_reference(
    c: int, size: tuple[int, int], levels: int, radius: tuple[int, int]
) -> None:
    inputs = _inputs(2, c, *size, dtype=torch.float32)
    scale = c**-0.5
    plain = _with_gradients(AllPairs(levels, radius, scale, "reference"), *inputs)
    fast = _with_gradients(AllPairs(levels, radius, scale, "torch"), *inputs)
    doubles = [t.double() for t in inputs]
    truth = _with_gradients(AllPairs(levels, radius, scale, "reference"), *doubles)
    for f, p, t in zip(fast, plain, truth, strict=True):
        assert f.shape == p.shape
        assert_as_exact_as(f, p, t)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_one_pair_without_gradients_is_a_convolution(
    monkeypatch: pytest.MonkeyPatch, layout: torch.memory_format
) -> None:
    """On a CPU in float32 and more than one thread; the costs are those of the reference."""
    inputs = _inputs(1, 64, 24, 23, dtype=torch.float32)
    laid = [t.contiguous(memory_format=layout) for t in inputs]
    calls, convolve = [], F.conv2d
    monkeypatch.setattr(F, "conv2d", lambda *given: calls.append(given) or convolve(*given))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    operator = AllPairs(2, (2, 3), 0.7, "torch")
    fast = _lookup(operator, *laid)
    assert len(calls) == 1
    plain = AllPairs(2, (2, 3), 0.7, "reference")
    truth = _lookup(plain, *(t.double() for t in inputs))
    assert_as_exact_as(fast, _lookup(plain, *inputs), truth)
    f1, f2, coords = inputs
    _lookup(operator, f1.clone().requires_grad_(), f2, coords)
    _lookup(operator, f1.double(), f2.double(), coords)
    _lookup(operator, *(t.repeat(2, 1, 1, 1) for t in inputs))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    _lookup(operator, *inputs)
    assert len(calls) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    f1, f2, coords = (t.requires_grad_() for t in _inputs(2, 2, 4, 5))
    operator = AllPairs(2, (2, 1), 0.7, backend)
    # One random projection of the Jacobian; entry by entry it answers to the reference above.
    assert torch.autograd.gradcheck(
        lambda *t: _lookup(operator, *t), (f1, f2, coords), fast_mode=True
    )


FAR = [(far, backend) for far in (1e3, -1e3, 1e30, -1e30) for backend in BACKENDS]


@pytest.mark.parametrize(
    ("far", "backend"), [*FAR, (float("inf"), "torch"), (-float("inf"), "torch")]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_far_outside_is_exactly_zero(far: float, axis: int, backend: str) -> None:
    f1, f2, coords = _inputs(2, 2, 5, 8, dtype=torch.float32)
    coords[:, axis] = far
    assert _lookup(AllPairs(3, (2, 1), 1.0, backend), f1, f2, coords).eq(0).all()


def test_just_out_of_view_is_exactly_zero_and_just_in_view_is_not() -> None:
    """Every distance at which a window leaves the map, on all four sides, in both passes."""
    h, w, rx, ry = 4, 7, 2, 1
    ones = torch.ones(1, 1, h, w)
    operator = AllPairs(1, (rx, ry))
    state = operator.build(ones, ones)
    for x in range(-2 * rx - 4, w + 2 * rx + 4):
        for y in range(-2 * ry - 4, h + 2 * ry + 4):
            coords = torch.tensor([x, y]).float().view(1, 2, 1, 1).expand(1, 2, h, w)
            seen = sum(
                0 <= x + dx < w and 0 <= y + dy < h
                for dx in range(-rx, rx + 1)
                for dy in range(-ry, ry + 1)
            )
            assert operator.lookup(state, coords).sum().item() == seen * h * w


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_level_of_one_pixel_gives_no_nan(backend: str) -> None:
    for h, w in ((4, 4), (4, 9), (7, 5)):
        f1, f2, coords = _inputs(1, 2, h, w, dtype=torch.float32)
        results = _with_gradients(AllPairs(3, 2, 1.0, backend), f1, f2, coords)
        assert all(t.isfinite().all() for t in results)
        assert results[0].view(1, 3, 25, h, w)[:, 2].abs().sum() > 0


def test_a_nan_point_spoils_only_itself() -> None:
    f1, f2, coords = _inputs(1, 2, 4, 5, dtype=torch.float32)
    clean = _lookup(AllPairs(2, 1), f1, f2, coords)
    coords[0, :, 1, 2] = float("nan")
    out = _lookup(AllPairs(2, 1), f1, f2, coords)
    others = torch.ones(4, 5, dtype=torch.bool)
    others[1, 2] = False
    assert torch.equal(out[..., others], clean[..., others])


@pytest.mark.parametrize("backend", BACKENDS)
def test_linear_in_f2(backend: str) -> None:
    f1, f2, coords = _inputs(2, 3, 6, 9)
    other = torch.randn_like(f2)
    operator = AllPairs(2, (2, 1), 1.0, backend)
    combined = _lookup(operator, f1, 2 * f2 - other, coords)
    apart = 2 * _lookup(operator, f1, f2, coords) - _lookup(operator, f1, other, coords)
    torch.testing.assert_close(combined, apart)


@pytest.mark.parametrize("axis", [-1, -2])
def test_flipping_maps_and_flow_flips_map_and_window(axis: int) -> None:
    """With sizes that are multiples of 2^(levels−1): pooling drops odd rows at one end only.

    A flipped pixel centre x of level 0 is w−1−x; at level i the lookup's centre coords/2^i turns
    into (w−1−x)/2^i, which mirrors level i only for i = 0, so one level is asked for.
    """
    f1, f2, _ = _inputs(2, 3, 6, 8)
    flow = 3 * torch.randn(2, 2, 6, 8, dtype=torch.float64)
    sign = torch.tensor([-1.0, 1.0] if axis == -1 else [1.0, -1.0], dtype=torch.float64)
    operator = AllPairs(1, (2, 1))
    straight = _lookup(operator, f1, f2, coords_from_flow(flow)).view(2, 5, 3, 6, 8)
    mirrored = coords_from_flow(sign.view(2, 1, 1) * flow.flip(axis))
    flipped = _lookup(operator, f1.flip(axis), f2.flip(axis), mirrored).view(2, 5, 3, 6, 8)
    torch.testing.assert_close(flipped, straight.flip(axis, 1 if axis == -1 else 2))


def test_half_precision_costs_keep_exact_positions() -> None:
    f1, f2, _ = _inputs(1, 4, 2, 300, dtype=torch.float32)
    coords = pixel_grid(2, 300)[None]
    whole = _lookup(AllPairs(1, 0), f1, f2, coords)
    half = _lookup(AllPairs(1, 0), f1.bfloat16(), f2.bfloat16(), coords)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), whole, atol=0.1, rtol=0.02)


def test_the_result_lies_channels_last_and_its_gradient_may_be_anything() -> None:
    f1, f2, coords = _inputs(1, 2, 4, 6)
    f1.requires_grad_()
    out = _lookup(AllPairs(2, 1), f1, f2, coords)
    assert out.is_contiguous(memory_format=torch.channels_last)
    (dense,) = torch.autograd.grad(out.sum(), f1, retain_graph=True)
    (strided,) = torch.autograd.grad(out.transpose(2, 3).contiguous().sum(), f1)
    torch.testing.assert_close(dense, strided)


def test_refusals() -> None:
    x = torch.zeros(1, 2, 8, 9)
    operator = AllPairs(2, 1)
    state = operator.build(x, x)
    with pytest.raises(ShapeError, match=r"AllPairs.build: f2 has w=8 but f1 has w=9 .* one size"):
        operator.build(x, torch.zeros(1, 2, 8, 8))
    with pytest.raises(ArgumentError, match=r"AllPairs.build: 5 levels .* at least 16×16, but f2"):
        AllPairs(5).build(x, x)
    with pytest.raises(ArgumentError, match=r"AllPairs.lookup: coords .* wanted \(1, 2, 8, 9\)"):
        operator.lookup(state, torch.zeros(1, 2, 9, 8))
    with pytest.raises(ArgumentError, match=r"built with .* build and look up with the same"):
        AllPairs(2, 2).lookup(state, torch.zeros(1, 2, 8, 9))
    with pytest.raises(ShapeError, match=r"AllPairs.lookup: coords has 3 dimensions \(2,8,9\)"):
        operator.lookup(state, torch.zeros(2, 8, 9))
    with pytest.raises(ArgumentError, match="AllPairs: levels is 0"):
        AllPairs(0)
    with pytest.raises(ArgumentError, match="AllPairs: radius is -1"):
        AllPairs(radius=-1)

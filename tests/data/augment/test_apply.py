"""The whole augmentation: exact, the same in any batch, blind to what is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lcv.cost_volume import in_view, pixel_grid, warp
from lcv.data.augment import (
    DDFLOW,
    Augmentation,
    Batch,
    Geometry,
    augment,
    augment_mixed,
    batch_of,
    raft_dense,
    raft_sparse,
    reference,
)
from lcv.data.augment.apply import Plan, make_plan
from lcv.data.augment.means import UNIT
from lcv.errors import ArgumentError

SIZES = ((37, 52), (40, 45), (33, 58), (40, 58))


def _tensors(batch: Batch) -> list[Tensor]:
    return [batch.image1, batch.image2, batch.flow, batch.valid]


def _plan_tensors(plan: Plan) -> list[Tensor]:
    parts = [plan.placement.y, plan.placement.x, plan.colours, plan.rectangles]
    found = [t for part in parts if part is not None for t in vars(part).values()]
    return [plan.placement.is_resized, *found, *([] if plan.swap is None else [plan.swap])]


def test_equals_the_slow_reference(recipe: Augmentation, make_batch: Callable[..., Batch]) -> None:
    batch = make_batch(SIZES * 2)
    out = augment(batch, recipe, seed=5)
    plan = make_plan(batch, recipe, seed=5)
    for k in range(len(batch)):
        image1, image2, flow, valid = reference.augment_one(batch, recipe, plan, k)
        # Means are whole multiples of 1/UNIT here; the rest is float64.
        torch.testing.assert_close(out.image1[k], image1, rtol=0, atol=2 / UNIT)
        torch.testing.assert_close(out.image2[k], image2, rtol=0, atol=2 / UNIT)
        assert torch.equal(out.valid[k], valid)
        torch.testing.assert_close(out.flow[k], flow, rtol=1e-13, atol=1e-13)


def test_bytes_come_out_as_floats_near_the_reference(
    recipe: Augmentation, make_batch: Callable[..., Batch]
) -> None:
    batch = make_batch(dtype=torch.uint8)
    out = augment(batch, recipe, seed=5)
    assert out.image1.dtype == out.flow.dtype == torch.float32
    plan = make_plan(batch, recipe, seed=5)
    for k in range(len(batch)):
        image1, image2, flow, _ = reference.augment_one(batch, recipe, plan, k)
        # A pixel passes through about 32 roundings of numbers up to 255.
        rounding = 32 * 255 * torch.finfo(torch.float32).eps
        torch.testing.assert_close(out.image1[k].double(), image1, rtol=0, atol=rounding)
        torch.testing.assert_close(out.image2[k].double(), image2, rtol=0, atol=rounding)
        torch.testing.assert_close(out.flow[k].double(), flow, rtol=1e-5, atol=1e-5)


def test_a_pair_is_the_same_to_the_bit_in_any_batch(
    recipe: Augmentation,
    make_batch: Callable[..., Batch],
    take: Callable[[Batch, list[int]], Batch],
) -> None:
    batch = make_batch(dtype=torch.float32)
    together = _tensors(augment(batch, recipe, seed=1))
    for which in ([2], [3, 0, 1], [1, 1]):
        some = _tensors(augment(take(batch, which), recipe, seed=1))
        assert all(torch.equal(s, t[which]) for s, t in zip(some, together, strict=True))


def test_seed_and_index_both_matter() -> None:
    recipe = Augmentation(Geometry((24, 35), log2_scale=(0.0, 0.8), resize_probability=1.0))
    images = torch.zeros(8, 3, 40, 50)
    plans = [make_plan(batch_of(images, images, range(8)), recipe, seed) for seed in (0, 1)]
    scales = torch.stack([plan.placement.x.scale for plan in plans])
    assert len(scales.unique()) == 16


@pytest.mark.parametrize("sparse", [False, True])
def test_nan_never_leaks_and_what_is_unknown_stays_so(
    sparse: bool, make_batch: Callable[..., Batch]
) -> None:
    make = raft_sparse if sparse else raft_dense
    recipe = make((24, 35), (-0.4, 0.8))
    batch = make_batch()
    spoilt = batch.flow.clone()
    spoilt[~batch.valid.expand_as(spoilt)] = float("nan")
    clean, out = augment(batch, recipe, 3), augment(replace(batch, flow=spoilt), recipe, 3)
    assert all(torch.equal(a, b) for a, b in zip(_tensors(clean), _tensors(out), strict=True))
    assert out.valid.any()
    assert not out.valid.all()
    assert (out.flow[~out.valid.expand_as(out.flow)] == 0).all()
    # NaN in a vector that is called known is as unknown.
    spoilt = torch.full_like(spoilt, float("inf"))
    assert not augment(replace(batch, flow=spoilt), recipe, 3).valid.any()


def test_nothing_beyond_the_true_size_is_read(
    recipe: Augmentation, make_batch: Callable[..., Batch]
) -> None:
    batch = make_batch()
    other = make_batch()
    for k, (height, width) in enumerate(batch.sizes):
        for plane in (other.image1, other.image2, other.flow):
            plane[k, :, height:] = 200.0
            plane[k, :, :, width:] = 200.0
        other.valid[k, :, height:] = True
        other.valid[k, :, :, width:] = True
    pairs = zip(
        _tensors(augment(batch, recipe, 2)), _tensors(augment(other, recipe, 2)), strict=True
    )
    assert all(torch.equal(a, b) for a, b in pairs)


def _painted(h: int, w: int, b: int) -> tuple[Batch, float]:
    """b pairs with image1(p) = image2(p + flow(p)), and the greatest Σ|second derivative| of both.

    The flow is affine, so that bilinear interpolation keeps it exactly.
    """
    grid = pixel_grid(h, w, dtype=torch.float64)
    frequency = torch.tensor([[0.13, 0.05], [-0.07, 0.12], [0.06, -0.1]], dtype=torch.float64)
    middle = torch.tensor([w / 2, h / 2], dtype=torch.float64).view(2, 1, 1)
    matrix = torch.tensor([[0.04, -0.05], [0.06, -0.03]], dtype=torch.float64)
    shift = torch.tensor([4.0, -2.5], dtype=torch.float64).view(2, 1, 1)
    flow = torch.einsum("ij,jhw->ihw", matrix, grid - middle) + shift

    def paint(at: Tensor) -> Tensor:
        return 127 + 100 * torch.einsum("cj,jhw->chw", frequency, at).sin()

    image2, image1 = paint(grid), paint(grid + flow)
    # image1 is a sine too, of the frequency (I + matrix)ᵀ f.
    seen = frequency @ (torch.eye(2, dtype=torch.float64) + matrix)
    bend = 100 * max(float((f**2).sum(1).max()) for f in (frequency, seen))
    pairs = [t.expand(b, *t.shape).contiguous() for t in (image1, image2, flow)]
    return batch_of(pairs[0], pairs[1], range(b), pairs[2]), bend


@pytest.mark.parametrize("resizes", [True, False])
def test_a_pair_related_by_its_flow_stays_so(resizes: bool) -> None:
    batch, bend = _painted(60, 80, 24)
    full = raft_dense((44, 57), (-0.2, 0.8)) if resizes else DDFLOW.with_crop((44, 57))
    recipe = replace(full, jitter=None, eraser=None, swap_channels=False)
    out = augment(batch, recipe, seed=4)
    plan = make_plan(batch, recipe, seed=4).placement
    assert plan.x.flip.any()
    assert plan.y.flip.any()
    assert bool(plan.is_resized.any()) == resizes
    error = (warp(out.image2, out.flow) - out.image1).abs().amax(1, keepdim=True)
    # Half a pixel beyond the outermost centres the border is repeated: not the painted scene.
    steady = pixel_grid(44, 57, dtype=torch.float64) + out.flow
    seen = in_view(out.flow)
    for c, axis in enumerate((plan.x, plan.y)):
        for place in (pixel_grid(44, 57, dtype=torch.float64)[None, c], steady[:, c]):
            r = place + axis.offset[:, None, None]
            low, high = axis.scale[:, None, None], (axis.resized - 1 - axis.scale)[:, None, None]
            seen = seen & ((r > low) & (r < high))[:, None]
    assert seen.float().mean() > 0.5
    # Linear interpolation errs by at most bend/8 an axis-pair, and happens to image1, to image2,
    # and in the warp, where pixels are 1/scale apart.
    apart = (1 / torch.minimum(plan.x.scale, plan.y.scale)).clamp(min=1).max()
    once = bend / 8
    budget = once * (2 + float(apart) ** 2) if resizes else once
    assert error[seen].max() <= budget
    # The bound has teeth: flow of the wrong sign in x breaks it.
    wrong = out.flow * torch.tensor([-1.0, 1.0], dtype=torch.float64).view(2, 1, 1)
    assert (warp(out.image2, wrong) - out.image1).abs()[seen.expand_as(out.image1)].max() > budget


def test_a_mixed_batch_is_its_parts(
    make_batch: Callable[..., Batch], take: Callable[[Batch, list[int]], Batch]
) -> None:
    batch = make_batch(dtype=torch.float32)
    dense, sparse = raft_dense((24, 35), (-0.2, 0.6)), raft_sparse((24, 35), (-0.3, 0.5))
    first, second = take(batch, [0, 1]), take(batch, [2, 3])
    mixed = augment_mixed([(first, dense), (second, sparse)], seed=8)
    parts = [_tensors(augment(first, dense, 8)), _tensors(augment(second, sparse, 8))]
    for m, a, b in zip(_tensors(mixed), *parts, strict=True):
        assert torch.equal(m, torch.cat((a, b)))
    assert mixed.indices.tolist() == [10, 11, 12, 13]
    assert mixed.sizes == ((24, 35),) * 4


def test_pairs_without_truth_get_the_same_pixels(make_batch: Callable[..., Batch]) -> None:
    with_truth = augment(make_batch(), DDFLOW.with_crop((24, 35)), 0)
    without = augment(make_batch(truth=False), DDFLOW.with_crop((24, 35)), 0)
    assert torch.equal(with_truth.image2, without.image2)
    assert without.flow is None
    assert without.valid is None


def test_a_vector_with_too_long_a_component_becomes_unknown(
    make_batch: Callable[..., Batch],
) -> None:
    batch = make_batch(((24, 36),))
    flow = torch.zeros_like(batch.flow)
    flow[:, 0, :, 20] = 1000.0
    flow[:, 1, :, 21] = -999.0
    flow[:, :, :, 22] = 999.0  # longer than the limit, but neither component is: RAFT's rule
    batch = replace(batch, flow=flow, valid=torch.ones_like(batch.valid))
    recipe = Augmentation(Geometry((24, 36)), largest_flow=1000.0)
    out = augment(batch, recipe, 0)
    assert (~out.valid[0, 0]).nonzero()[:, 1].unique().tolist() == [20]
    assert out.flow.abs().max() == 999


def test_refuses_pairs_smaller_than_a_crop_without_resizing(
    make_batch: Callable[..., Batch],
) -> None:
    with pytest.raises(
        ArgumentError, match=r"pair 2 of the batch is 33×58, smaller than the crop 35×40"
    ):
        augment(make_batch(), DDFLOW.with_crop((35, 40)), 0)


def test_mixed_refuses_what_does_not_join(make_batch: Callable[..., Batch]) -> None:
    batch = make_batch()
    with pytest.raises(ArgumentError, match=r"crop to \[\(20, 30\), \(24, 35\)\], wanted one size"):
        augment_mixed([(batch, DDFLOW.with_crop((24, 35))), (batch, DDFLOW.with_crop((20, 30)))], 0)
    small = DDFLOW.with_crop((24, 35))
    with pytest.raises(ArgumentError, match="some parts have truth and some do not"):
        augment_mixed([(batch, small), (make_batch(truth=False), small)], 0)
    with pytest.raises(ArgumentError, match="there are no parts"):
        augment_mixed([], 0)


def _on(batch: Batch, device: str) -> Batch:
    names = ("image1", "image2", "indices", "flow", "valid")
    return replace(batch, **{name: getattr(batch, name).to(device) for name in names})


@pytest.mark.gpu
def test_a_gpu_draws_the_same_plan_and_paints_the_same_pixels(
    recipe: Augmentation, make_batch: Callable[..., Batch]
) -> None:
    batch = make_batch(SIZES * 8, dtype=torch.float32)
    there = _on(batch, "cuda")
    here_plan = _plan_tensors(make_plan(batch, recipe, 6))
    there_plan = _plan_tensors(make_plan(there, recipe, 6))
    assert all(torch.equal(a, b.cpu()) for a, b in zip(here_plan, there_plan, strict=True))
    here, out = augment(batch, recipe, 6), _on(augment(there, recipe, 6), "cpu")
    assert torch.equal(here.valid, out.valid)
    rounding = 32 * 255 * torch.finfo(torch.float32).eps
    assert (here.image1 - out.image1).abs().max() < rounding
    assert (here.image2 - out.image2).abs().max() < rounding
    torch.testing.assert_close(here.flow, out.flow)


@pytest.mark.gpu
def test_a_gpu_is_never_waited_for(recipe: Augmentation, make_batch: Callable[..., Batch]) -> None:
    batch = _on(make_batch(), "cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        augment(batch, recipe, 6)
    finally:
        torch.cuda.set_sync_debug_mode("default")

"""The whole augmentation of a batch: draw a plan from (seed, index), then carry it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.cost_volume.conventions import exact_dtype
from lcv.data.augment.occlusion import Rectangles, draw_rectangles, erase
from lcv.data.augment.photometric import (
    Colours,
    change_colours,
    draw_colours,
    draw_swap,
    swap_channels,
)
from lcv.data.augment.recipes import Augmentation
from lcv.data.augment.sparse import place_sparse
from lcv.data.augment.spatial import Placement, draw_placement, place_dense, resample
from lcv.data.augment.types import Batch
from lcv.data.random import Draws
from lcv.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Plan:
    """All that was drawn for b pairs. swap: (b, 3) int64, the channels' new order."""

    placement: Placement
    colours: Colours | None
    rectangles: Rectangles | None
    swap: Tensor | None


@torch.no_grad()
def augment(batch: Batch, recipe: Augmentation, seed: int) -> Batch:
    """The batch's pairs, augmented, all of the recipe's crop size; images float in 0 … 255.

        batch = augment(pad_samples(samples, indices, "cuda"), RAFT_KITTI, seed=7)

    Every draw is a function of (seed, index, its name), so a pair comes out the same, to the bit,
    in any batch; on another device its plan is the same to the bit and its pixels to rounding.
    To see a pair differently in the next epoch, give it another index. Nothing waits for the
    device. Flow is 0 where `valid` is False, whatever was there before.
    """
    check(batch, recipe)
    return carry_out(batch, recipe, make_plan(batch, recipe, seed))


def augment_mixed(parts: Sequence[tuple[Batch, Augmentation]], seed: int) -> Batch:
    """Parts with recipes of their own joined to one batch, in their order; one crop size for all.

    The sintel stage of RAFT has dense and sparse pairs in one batch.
    """
    if not parts:
        raise ArgumentError("augment_mixed: there are no parts, wanted at least one")
    crops = {recipe.geometry.crop for _, recipe in parts}
    if len(crops) != 1:
        raise ArgumentError(
            f"augment_mixed: the recipes crop to {sorted(crops)}, wanted one size; "
            f"Augmentation.with_crop changes it"
        )
    if len({batch.flow is None for batch, _ in parts}) != 1:
        raise ArgumentError("augment_mixed: some parts have truth and some do not, wanted one kind")
    done = [augment(batch, recipe, seed) for batch, recipe in parts]

    def joined(name: str) -> Tensor:
        return torch.cat([getattr(batch, name) for batch in done])

    with_truth = done[0].flow is not None
    return Batch(
        joined("image1"),
        joined("image2"),
        joined("indices"),
        tuple(size for batch in done for size in batch.sizes),
        joined("flow") if with_truth else None,
        joined("valid") if with_truth else None,
    )


def check(batch: Batch, recipe: Augmentation) -> None:
    """Refuses pairs smaller than a crop that nothing enlarges them for."""
    if recipe.geometry.log2_scale is not None:
        return
    crop_h, crop_w = recipe.geometry.crop
    for k, (height, width) in enumerate(batch.sizes):
        if height < crop_h or width < crop_w:
            raise ArgumentError(
                f"augment: pair {k} of the batch is {height}×{width}, smaller than the crop "
                f"{crop_h}×{crop_w}, and the recipe does not resize; "
                f"take a smaller crop (Augmentation.with_crop) or set Geometry.log2_scale"
            )


def make_plan(batch: Batch, recipe: Augmentation, seed: int) -> Plan:
    """Everything that is random about `augment`."""
    draws = Draws(seed, batch.indices, batch.image1.device)
    heights, widths = batch.heights_and_widths()
    return Plan(
        draw_placement(recipe.geometry, draws, heights, widths),
        None if recipe.jitter is None else draw_colours(recipe.jitter, draws),
        None if recipe.eraser is None else draw_rectangles(recipe.eraser, draws, heights, widths),
        draw_swap(draws) if recipe.swap_channels else None,
    )


def carry_out(batch: Batch, recipe: Augmentation, plan: Plan) -> Batch:
    """Colour, eraser, channels, then geometry; what belongs to the images stays in floats."""
    crop = recipe.geometry.crop
    dtype = exact_dtype(batch.image1)
    frames = torch.stack((batch.image1, batch.image2), 1).to(dtype)  # (b, 2, 3, h, w)
    b, _, _, h, w = frames.shape
    inside = _inside(plan.placement, h, w)
    if plan.colours is not None:
        frames = change_colours(frames, inside, plan.colours)
    if plan.rectangles is not None:
        erased = erase(frames[:, 1], inside, plan.rectangles)
        frames = torch.stack((frames[:, 0], erased), 1)
    if plan.swap is not None:
        frames = swap_channels(frames, plan.swap)
    placed = resample(frames.reshape(b, 6, h, w), plan.placement, crop)
    image1, image2 = placed[:, :3].contiguous(), placed[:, 3:].contiguous()
    flow = valid = None
    if batch.flow is not None and batch.valid is not None:
        valid = batch.valid & batch.flow.isfinite().all(1, keepdim=True)
        flow = torch.where(valid, batch.flow, torch.zeros_like(batch.flow)).to(
            exact_dtype(batch.flow)
        )
        place = place_sparse if recipe.sparse else place_dense
        flow, valid = place(flow, valid, plan.placement, crop)
        if recipe.largest_flow is not None:
            valid = valid & (flow.abs() < recipe.largest_flow).all(1, keepdim=True)
            flow = torch.where(valid, flow, torch.zeros_like(flow))
    return Batch(image1, image2, batch.indices, (crop,) * b, flow, valid)


def _inside(placement: Placement, h: int, w: int) -> Tensor:
    """The pixels of the (h, w) planes that belong to each sample: (b, h, w) bool."""
    device = placement.is_resized.device
    rows = torch.arange(h, device=device) < placement.y.length[:, None]
    columns = torch.arange(w, device=device) < placement.x.length[:, None]
    return rows[:, :, None] & columns[:, None, :]

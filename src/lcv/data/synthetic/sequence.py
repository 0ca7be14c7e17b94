"""Pairs and sequences with exact flow and occlusion in both directions, batched, on any device.

batch = generate(TRAINING, seed=1, indices=range(48), size=(368, 496), device="cuda")
batch.image1, batch.flow, batch.occluded
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.effects import apply_effects
from lcv.data.synthetic.recipe import Recipe
from lcv.data.synthetic.render import flow_to, occluded_at, render
from lcv.data.synthetic.scene import draw_scene
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Batch:
    """n pairs. image1, image2: (n, 3, h, w) float32 in 0 … 255; flow, backward: (n, 2, h, w);
    occluded, occluded_backward: (n, 1, h, w) bool, out of frame included."""

    image1: Tensor
    image2: Tensor
    flow: Tensor
    backward: Tensor
    occluded: Tensor
    occluded_backward: Tensor


@dataclass(frozen=True)
class SequenceBatch:
    """n sequences of T frames. images: (n, T, 3, h, w); flow and occluded: (n, T−1, 2 or 1, h, w)
    from frame t to t + 1; backward and occluded_backward: the same from t + 1 to t."""

    images: Tensor
    flow: Tensor
    backward: Tensor
    occluded: Tensor
    occluded_backward: Tensor


@torch.no_grad()
def generate(
    recipe: Recipe,
    seed: int,
    indices: Sequence[int] | Tensor,
    size: tuple[int, int],
    device: torch.device | str = "cpu",
    *,
    textures: Tensor | None = None,
) -> Batch:
    """The pairs with these indices. Everything is a function of (recipe, seed, index, size, textures).

    textures: a bank (k, 3, s, s) uint8 on the device (`load_bank`, `procedural_bank`); by default
    the procedural one for training.
    Facts: the same pair at any batch size and order; |pixel| differences across devices below one
    grey level; never waits for the device.
    """
    out = generate_sequence(recipe, seed, indices, size, device, frames=2, textures=textures)
    return Batch(
        image1=out.images[:, 0],
        image2=out.images[:, 1],
        flow=out.flow[:, 0],
        backward=out.backward[:, 0],
        occluded=out.occluded[:, 0],
        occluded_backward=out.occluded_backward[:, 0],
    )


@torch.no_grad()
def generate_sequence(
    recipe: Recipe,
    seed: int,
    indices: Sequence[int] | Tensor,
    size: tuple[int, int],
    device: torch.device | str = "cpu",
    *,
    frames: int,
    textures: Tensor | None = None,
) -> SequenceBatch:
    """Sequences of `frames` frames whose motion changes from step to step; else as `generate`.

    Facts: the first frames are those of `generate` with the same arguments.
    """
    if frames < 2:
        raise ArgumentError(f"generate_sequence: frames is {frames}, wanted 2 or more")
    draws = Draws(seed, indices, device)
    bank = procedural_bank(device=str(draws.device)) if textures is None else textures
    if bank.device != draws.device:
        raise ArgumentError(
            f"generate: the texture bank is on {bank.device} and the pairs are made on "
            f"{draws.device}; move the bank there once with .to(device)"
        )
    # Inside a training step autocast may be on; half floats cannot tell one pixel from the next.
    with torch.autocast(draws.device.type, enabled=False):
        scene = draw_scene(recipe, draws, size, frames, bank)
        views = [render(scene, time) for time in range(frames)]
        flow = [flow_to(scene, views[t], t + 1) for t in range(frames - 1)]
        backward = [flow_to(scene, views[t + 1], t) for t in range(frames - 1)]
        occluded = [occluded_at(scene, views[t], flow[t], t + 1) for t in range(frames - 1)]
        hidden = [occluded_at(scene, views[t + 1], backward[t], t) for t in range(frames - 1)]
        # Frames are blurred along their motion since the one before; the first, to the next.
        paths = [flow[0], *(-step for step in backward)]
        images = apply_effects(recipe, draws, [view.image for view in views], paths)
    return SequenceBatch(
        images=torch.stack(images, 1),
        flow=torch.stack(flow, 1),
        backward=torch.stack(backward, 1),
        occluded=torch.stack(occluded, 1),
        occluded_backward=torch.stack(hidden, 1),
    )

"""Pairs and sequences with exact flow and occlusion in both directions, batched, on any device.

batch = generate(TRAINING, seed=1, indices=range(48), size=(368, 496), device="cuda")
batch.image1, batch.flow, batch.occluded
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.backend import choose_backend, renderer
from lcv.data.synthetic.draws import SceneDraws, plan_of
from lcv.data.synthetic.effects import apply_effects, effects_of
from lcv.data.synthetic.mixing import split, together
from lcv.data.synthetic.render import independent
from lcv.data.synthetic.scene import draw_scene
from lcv.data.synthetic.settings import Mixture, Recipe
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Batch:
    """n pairs. image1, image2: (n, 3, h, w) float32 in 0 … 255; flow, backward: (n, 2, h, w).

    (n, 1, h, w) bool: occluded and occluded_backward, out of frame included; out_of_frame, where
    the flow leads out; independent, where the layer shown in image1 moves by itself.
    """

    image1: Tensor
    image2: Tensor
    flow: Tensor
    backward: Tensor
    occluded: Tensor
    occluded_backward: Tensor
    out_of_frame: Tensor
    independent: Tensor


@dataclass(frozen=True)
class SequenceBatch:
    """n sequences of T frames. images: (n, T, 3, h, w); flow and masks: (n, T−1, 2 or 1, h, w) from
    frame t to t + 1; backward and occluded_backward: the same from t + 1 to t."""

    images: Tensor
    flow: Tensor
    backward: Tensor
    occluded: Tensor
    occluded_backward: Tensor
    out_of_frame: Tensor
    independent: Tensor


@torch.no_grad()
def generate(
    recipe: Recipe | Mixture,
    seed: int,
    indices: Sequence[int] | Tensor,
    size: tuple[int, int],
    device: torch.device | str = "cpu",
    *,
    textures: Tensor | None = None,
    backend: str = "auto",
) -> Batch:
    """The pairs with these indices. Everything is a function of (recipe, seed, index, size, textures).

    textures: a bank (k, 3, s, s) uint8 on the device (`load_bank`, `procedural_bank`); by default
    the procedural one for training.
    backend: "auto", "torch" or "triton", which is several times as fast on a GPU and equal up to
    rounding.
    Facts: the same pair at any batch size and order; |pixel| differences across devices below one
    grey level; never waits for the device.
    """
    out = generate_sequence(
        recipe, seed, indices, size, device, frames=2, textures=textures, backend=backend
    )
    return Batch(
        image1=out.images[:, 0],
        image2=out.images[:, 1],
        flow=out.flow[:, 0],
        backward=out.backward[:, 0],
        occluded=out.occluded[:, 0],
        occluded_backward=out.occluded_backward[:, 0],
        out_of_frame=out.out_of_frame[:, 0],
        independent=out.independent[:, 0],
    )


@torch.no_grad()
def generate_sequence(
    recipe: Recipe | Mixture,
    seed: int,
    indices: Sequence[int] | Tensor,
    size: tuple[int, int],
    device: torch.device | str = "cpu",
    *,
    frames: int,
    textures: Tensor | None = None,
    backend: str = "auto",
) -> SequenceBatch:
    """Sequences of `frames` frames whose motion changes from step to step; else as `generate`.

    Facts: the first frames are those of `generate` with the same arguments.
    """
    if frames < 2:
        raise ArgumentError(f"generate_sequence: frames is {frames}, wanted 2 or more")
    device = torch.empty(0, device=device).device
    bank = procedural_bank(device=str(device)) if textures is None else textures
    if bank.device != device:
        raise ArgumentError(
            f"generate: the texture bank is on {bank.device} and the pairs are made on "
            f"{device}; move the bank there once with .to(device)"
        )
    where = torch.as_tensor(indices, dtype=torch.int64).cpu()
    groups = split(recipe, seed, where)

    def drawn(purpose: str, kind: Recipe, places: Tensor) -> Draws:
        return SceneDraws(seed, where[places], device, plan_of(purpose, kind, frames))

    # Inside a training step autocast may be on; half floats cannot tell one pixel from the next.
    with torch.autocast(device.type, enabled=False):
        scene = together(
            [draw_scene(kind, drawn("scene", kind, at), size, frames, bank) for kind, at in groups]
        )
        chosen = choose_backend(backend, device)
        painter = renderer(scene, chosen)
        views = [painter.render(time) for time in range(frames)]
        steps = range(frames - 1)
        ahead = [painter.follow(views[t], t + 1) for t in steps]
        behind = [painter.follow(views[t + 1], t) for t in steps]
        flow, occluded, gone = (list(parts) for parts in zip(*ahead, strict=True))
        backward, hidden, _ = (list(parts) for parts in zip(*behind, strict=True))
        own = [independent(scene, views[t]) for t in steps]
        # Frames are blurred along their motion since the one before; the first, to the next.
        paths = [flow[0], *(-step for step in backward)]
        images = _with_effects(groups, drawn, [view.image for view in views], paths, chosen)
    places = torch.cat([at for _, at in groups])
    order = places.argsort().to(device, non_blocking=True)

    def stacked(parts: list[Tensor]) -> Tensor:
        whole = torch.stack(parts, 1)
        return whole if len(groups) == 1 else whole[order]

    return SequenceBatch(
        images=stacked(images),
        flow=stacked(flow),
        backward=stacked(backward),
        occluded=stacked(occluded),
        occluded_backward=stacked(hidden),
        out_of_frame=stacked(gone),
        independent=stacked(own),
    )


def _with_effects(
    groups: list[tuple[Recipe, Tensor]],
    drawn: Callable[[str, Recipe, Tensor], Draws],
    frames: list[Tensor],
    paths: list[Tensor],
    backend: str,
) -> list[Tensor]:
    """The frames of all kinds with effects; neighbouring kinds with the same effects at once."""
    parts, start = [], 0
    for _, alike in itertools.groupby(groups, lambda group: effects_of(group[0])):
        kinds, places = zip(*alike, strict=True)
        draws = drawn("effects", kinds[0], torch.cat(places))
        here = slice(start, start + len(draws))
        views, ways = ([whole[here] for whole in wholes] for wholes in (frames, paths))
        parts.append(apply_effects(kinds[0], draws, views, ways, backend))
        start += len(draws)
    if len(parts) == 1:
        return parts[0]
    return [torch.cat(pieces) for pieces in zip(*parts, strict=True)]

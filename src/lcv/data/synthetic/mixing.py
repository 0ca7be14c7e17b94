"""Batches of several kinds of scene: which pair is of which kind, and all of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.motion import ABSENT, Motion
from lcv.data.synthetic.scene import Scene
from lcv.data.synthetic.settings import Mixture, Recipe
from lcv.data.synthetic.skins import Skins


def split(
    recipe: Recipe | Mixture, seed: int, indices: Sequence[int] | Tensor
) -> list[tuple[Recipe, Tensor]]:
    """The kinds of scene among these pairs, each with the places in `indices` that are of it.

    Worked out on the host, so nothing waits for a device. Facts: the kind of a pair depends on the
    seed and its index alone.
    """
    where = torch.as_tensor(indices, dtype=torch.int64).cpu()
    if len(recipe.parts) == 1:
        return [(recipe.parts[0][1], torch.arange(len(where)))]
    weights = [weight for weight, _ in recipe.parts]
    chosen = Draws(seed, where).choice("kind of scene", (), weights)
    places = [(kind, (chosen == k).nonzero()[:, 0]) for k, (_, kind) in enumerate(recipe.parts)]
    return [(kind, at) for kind, at in places if len(at)]


def together(scenes: list[Scene]) -> Scene:
    """Scenes of several kinds as one batch; those with fewer layers or shears get empty ones."""
    if len(scenes) == 1:
        return scenes[0]
    layers = max(scene.layers for scene in scenes)
    outlines = [
        F.pad(scene.outlines, (0, 0, 0, 0, 0, 0, 0, layers - scene.layers)) for scene in scenes
    ]
    return Scene(
        size=scenes[0].size,
        motion=_motions([scene.motion for scene in scenes], layers),
        skins=_skins([scene.skins for scene in scenes], layers),
        outlines=torch.cat(outlines),
        bank=scenes[0].bank,
    )


def _motions(motions: list[Motion], layers: int) -> Motion:
    shears = max(motion.wave.shape[2] for motion in motions)
    numbers = max(motion.wave.shape[3] for motion in motions)
    bends, waves, depths = [], [], []
    for motion in motions:
        missing = layers - motion.radius.shape[1]
        more = shears - motion.wave.shape[2]
        bends.append(F.pad(motion.bend, (0, 0, 0, more, 0, missing)))
        longer = numbers - motion.wave.shape[3]
        waves.append(F.pad(motion.wave, (0, longer, 0, more, 0, missing)))
        depth = F.pad(motion.inverse_depth, (0, 0, 0, missing))
        depths.append(depth)
        depth[:, :, layers - missing :, 2] = ABSENT
    return Motion(
        to_frame=_joined([motion.to_frame for motion in motions], 2, layers),
        to_layer=_joined([motion.to_layer for motion in motions], 2, layers),
        bend=torch.cat(bends),
        wave=torch.cat(waves),
        inverse_depth=torch.cat(depths),
        radius=_joined([motion.radius for motion in motions], 1, layers),
        independent=_joined([motion.independent for motion in motions], 1, layers),
        roll=_joined([motion.roll for motion in motions], 2, layers),
        perspective=any(motion.perspective for motion in motions),
        cylinders=any(motion.cylinders for motion in motions),
    )


def _skins(skins: list[Skins], layers: int) -> Skins:
    return Skins(
        tile=_joined([skin.tile for skin in skins], 1, layers),
        order=_joined([skin.order for skin in skins], 1, layers),
        gain=_joined([skin.gain for skin in skins], 1, layers),
        offset=_joined([skin.offset for skin in skins], 1, layers),
        place=_joined([skin.place for skin in skins], 1, layers),
        shadow=_joined([skin.shadow for skin in skins], 1, layers),
        trim=_joined([skin.trim for skin in skins], 1, layers),
        shadows=any(skin.shadows for skin in skins),
        trims=any(skin.trims for skin in skins),
    )


def _joined(parts: list[Tensor], axis: int, layers: int) -> Tensor:
    """All of them one after the other, each with its first layer repeated up to `layers`."""
    wide = []
    for part in parts:
        first = part.narrow(axis, 0, 1)
        wide.append(torch.cat([part, *[first] * (layers - part.shape[axis])], axis))
    return torch.cat(wide)

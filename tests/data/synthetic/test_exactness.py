"""Every kind of scene: flow, frames and occlusion agree with each other to rounding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import FRAMED, FURNITURE, GENTLE, SPACE, STREET, TRAINING
from lcv.data.synthetic.scene import draw_scene
from testing.exactness import exactness

KINDS = {
    "training": TRAINING,
    "gentle": replace(GENTLE, layers=7, objects=(3, 6)),
    "space": replace(SPACE, layers=9, objects=(3, 5)),
    "street": STREET,
    "furniture": replace(FURNITURE, layers=7, objects=(3, 6)),
    "framed": replace(FRAMED, layers=7, objects=(3, 6)),
    "cylinders": replace(GENTLE, layers=5, objects=None, round_probability=0.8),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_scene_is_exact(kind, bank):
    recipe = KINDS[kind].without_effects()
    with torch.no_grad():
        scene = draw_scene(recipe, Draws(3, range(4)), (64, 88), 2, bank)
    found = exactness(scene)
    assert found.back < 1e-3
    assert found.grey_away < 1
    assert found.hidden >= 0.995
    assert found.away > 0.5

"""Scenes without effects, small enough to look at every pixel of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.render import View, flow_to, hidden_at, render
from lcv.data.synthetic.scene import Scene, draw_scene
from lcv.data.synthetic.textures import procedural_bank

SIZE = (112, 144)


@pytest.fixture(scope="session")
def bank() -> Tensor:
    return procedural_bank(count=8, size=192)


@pytest.fixture(scope="session")
def scene(bank) -> Scene:
    """Twelve scenes of three frames, with all kinds of objects and bends."""
    with torch.no_grad():
        return draw_scene(TRAINING.without_effects(), Draws(4, range(12)), SIZE, 3, bank)


@pytest.fixture(scope="session")
def views(scene) -> list[View]:
    with torch.no_grad():
        return [render(scene, time) for time in range(3)]


@pytest.fixture(scope="session")
def flow(scene, views) -> Tensor:
    """From the first frame to the second."""
    return flow_to(scene, views[0], 1)


@pytest.fixture(scope="session")
def occluded(scene, views, flow) -> Tensor:
    return hidden_at(scene, views[0], flow, 1)[0]

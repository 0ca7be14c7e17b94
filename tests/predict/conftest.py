"""Small predictors with random weights, built once."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn

import lcv
from lcv import files
from lcv.predict.predictor import Predictor
from predict.small_jobs import Killed, quick_predictor
from testing.footage import save_frames
from testing.painted import painted_pair


@cache
def network(name: str) -> nn.Module:
    """A network with the same random weights in every test, and a W that is not the identity."""
    torch.manual_seed(0)
    model = lcv.build(name)
    with torch.no_grad():
        for parameter in model.inner_product.parameters():
            parameter.normal_(std=0.1)
    return model.eval()


@pytest.fixture
def make():
    """`make("raft-small", iters=2)`: a predictor on the CPU."""

    def build(name: str = "raft-small", **options) -> Predictor:
        if name.startswith("raft"):
            options = {"iters": 2, **options}
        return Predictor(network(name), device="cpu", **options)

    return build


@pytest.fixture(scope="module")
def predictor():
    """The same for all jobs of a file: one iteration of random weights."""
    return quick_predictor()


@pytest.fixture
def walk(tmp_path):
    """A folder of seven frames."""
    return save_frames(tmp_path / "walk", 7)


@pytest.fixture(scope="session")
def frames():
    """Four frames of a painted film, (3, 96, 136) each, all different."""
    one, two, _ = painted_pair(96, 136, seed=1)
    three, four, _ = painted_pair(96, 136, seed=2)
    return [image[0] for image in (one, two, three, four)]


@pytest.fixture
def dies_at(monkeypatch):
    """Let the n-th file from now on be the last that is written."""

    def arrange(number: int) -> None:
        left = [number]
        publish = files._publish

        def dying(*arguments):
            publish(*arguments)
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        monkeypatch.setattr(files, "_publish", dying)

    return arrange

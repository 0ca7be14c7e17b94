"""Small runs that take seconds on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


@pytest.fixture
def tiny(tmp_path) -> Callable[..., TrainConfig]:
    """tiny(**changes): a run of RAFT-small on procedural pairs of 64×64."""

    def make(**changes) -> TrainConfig:
        defaults = {
            "model": ModelConfig("raft-small"),
            "data": DataConfig(recipe="quick", size=(64, 64), ahead=2, workers=0),
            "optim": OptimConfig(lr=4e-4),
            "loss": LossConfig(iters=2),
            "steps": 6,
            "batch": 2,
            "precision": "float32",
            "folder": str(tmp_path / "run"),
            "log_every": 2,
            "save_every": 2,
            "validate_every": 0,
        }
        return TrainConfig(**{**defaults, **changes})

    return make


@pytest.fixture
def development_sets(monkeypatch):
    """Two sets of 64×96 in place of the real ones, painted with their index; what was asked for."""
    asked = []

    def batch(name, indices, size, device, textures):
        asked.append((name, *indices))
        flow = torch.zeros(len(indices), 2, 64, 96)
        if name == "split":  # the right half moves, its outermost 4 columns out of the frame
            flow[..., 48:] = torch.tensor([3.0, 4.0]).view(2, 1, 1)
        gone = torch.zeros(len(indices), 1, 64, 96, dtype=torch.bool)
        gone[..., 92:] = name == "split"
        image = torch.tensor(list(indices)).float().view(-1, 1, 1, 1).expand(-1, 3, 64, 96)
        return SimpleNamespace(image1=image, image2=image, flow=flow, out_of_frame=gone)

    monkeypatch.setattr("lcv.train.development.DEVELOPMENT", dict.fromkeys(["still", "split"]))
    monkeypatch.setattr("lcv.train.development.development_batch", batch)
    return asked

"""Small runs that take seconds on a CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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

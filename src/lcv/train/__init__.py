"""Layer 5: training, resumable, on one machine or many.

`run` and `run_stages` are imported when first used: a configuration alone loads no torch, so that a recipe can
be read, and `lcv train --help` answered, in an instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lcv.train.config import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    SplitConfig,
    Stages,
    TrainConfig,
    one_decay,
)

if TYPE_CHECKING:
    from lcv.train.loop import run as run
    from lcv.train.stages import run_stages as run_stages
    from lcv.train.stages import run_stages_together as run_stages_together

__all__ = [
    "DataConfig",
    "LossConfig",
    "ModelConfig",
    "OptimConfig",
    "PartConfig",
    "SplitConfig",
    "Stages",
    "TrainConfig",
    "one_decay",
    "run",
    "run_stages",
    "run_stages_together",
]


def __getattr__(name: str) -> Any:
    if name == "run":
        from lcv.train.loop import run

        return run
    if name in ("run_stages", "run_stages_together"):
        from lcv.train import stages

        return getattr(stages, name)
    raise AttributeError(f"module 'lcv.train' has no attribute {name!r}; it has {__all__}")

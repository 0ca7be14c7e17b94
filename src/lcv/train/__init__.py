"""Layer 5: training, resumable, on one machine or many.

`run` is imported when it is first used: a configuration alone loads no torch, so that a recipe can
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
    TrainConfig,
)

if TYPE_CHECKING:
    from lcv.train.loop import run as run

__all__ = [
    "DataConfig",
    "LossConfig",
    "ModelConfig",
    "OptimConfig",
    "PartConfig",
    "SplitConfig",
    "TrainConfig",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "run":
        from lcv.train.loop import run

        return run
    raise AttributeError(f"module 'lcv.train' has no attribute {name!r}; it has {__all__}")

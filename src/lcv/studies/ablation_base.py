"""The base run of an ablation without a recipe: procedural pairs, each network's own loss."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch

from lcv.errors import ArgumentError
from lcv.models.build import build
from lcv.models.types import FlowModel
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig, changed

VALIDATIONS = 6


def network_for(model: ModelConfig) -> FlowModel:
    """The network with random weights, to read its properties."""
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
        return cast(FlowModel, build(model.name, "euclidean", **model.options))


def procedural_base(model: str, weights: str | None) -> TrainConfig:
    """A short fine-tuning on procedural pairs, at a small rate as in the paper ("ct").

    What the network does otherwise (its loss, frozen batch norms, …) is in its `defaults`.
    """
    defaults = network_for(ModelConfig(model)).defaults
    base = TrainConfig(
        model=ModelConfig(model, weights=weights),
        data=DataConfig(recipe="training", size=(256, 320), ahead=8),
        optim=OptimConfig(lr=1e-4, weight_decay=1e-5),
        loss=LossConfig("sequence", gamma=0.8, iters=None if defaults.iters is None else 8),
        steps=1500,
        batch=6,
        precision="bf16",
        folder="",
    )
    return changed(base, defaults.finetuning)


def paced(base: TrainConfig, every: int | None = None) -> TrainConfig:
    """The base with validations, log and checkpoints as often as its steps ask for."""
    every = every or max(1, base.steps // VALIDATIONS)
    return replace(
        base,
        validate_every=every,
        save_every=max(1, min(base.steps, 500)),
        log_every=max(1, min(100, base.steps // 2)),
    )


def check_size(base: TrainConfig) -> None:
    """Refuse, before any cell does, a size at which the network does not work."""
    least = network_for(base.model).least_side
    height, width = base.data.size
    if min(height, width) < least:
        raise ArgumentError(
            f"size is {height}×{width}, and {base.model.name} takes images of at least "
            f"{least}×{least}; choose a larger one"
        )

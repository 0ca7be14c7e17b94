"""What an ablation starts from when no recipe is named: each network's loss, procedural pairs."""

from __future__ import annotations

from dataclasses import replace

import torch

from lcv.errors import ArgumentError
from lcv.models.build import build
from lcv.predict.engines import engine_for
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig

VALIDATIONS = 6


def procedural_base(model: str, weights: str | None) -> TrainConfig:
    """A short fine-tuning on procedural pairs, at a small rate as in the paper ("ct").

    RAFT's batch norms keep their statistics, as in all its stages but the first; VCN's do not, as
    in all of its own; DDFlow learns without truth, by the census loss, on pairs of small motion.
    """
    base = TrainConfig(
        model=ModelConfig(model, weights=weights, freeze_batch_norm=model.startswith("raft")),
        data=DataConfig(recipe="training", size=(256, 320), ahead=8),
        optim=OptimConfig(lr=1e-4, weight_decay=1e-5),
        loss=LossConfig("sequence", gamma=0.8, iters=8),
        steps=1500,
        batch=6,
        precision="bf16",
        folder="",
    )
    if model.startswith("vcn"):
        options = {"heads": True}
        return replace(
            base,
            model=replace(base.model, options=options),
            data=replace(base.data, size=(256, 320)),
            optim=replace(base.optim, weight_decay=0.0),
            loss=LossConfig("multiscale", iters=None),
            precision="float32",
        )
    if model == "ddflow":
        return replace(
            base,
            data=replace(base.data, recipe="moderate"),
            optim=replace(base.optim, weight_decay=0.0),
            loss=LossConfig("unsupervised", stage="census", iters=None),
        )
    if not model.startswith("raft"):
        raise ArgumentError(f"there is no ready base for {model!r}; name a recipe of its own")
    return base


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
    model = base.model
    with torch.random.fork_rng(devices=[]):  # nobody's draws are to change for it
        network = build(model.name, model.inner_product, **model.options)
    least = engine_for(network, None, None).least
    height, width = base.data.size
    if min(height, width) < least:
        raise ArgumentError(
            f"size is {height}×{width}, and {model.name} takes images of at least {least}×{least}; "
            f"choose a larger one"
        )

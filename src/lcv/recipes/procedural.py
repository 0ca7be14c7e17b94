"""Pretraining without a single file: RAFT+LCV on procedural pairs made on the GPU as it trains.

Command    lcv train procedural --folder runs/procedural
           `--data.textures PHOTOGRAPHS` paints the scenes with a folder of pictures.
           `--model.name raft-small` and `--model.inner_product euclidean` change the network.
Hardware   one GPU of 40 GB; less with `--accumulate 2` or a smaller `--batch`.
Result     not yet run.

RAFT's numbers for its first stage, W free from the first step. Validation is on held-out scenes
and textures.
"""

from __future__ import annotations

from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def recipe() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig("raft-large", inner_product="elliptical"),
        data=DataConfig(source="procedural", recipe="training", size=(368, 496)),
        optim=OptimConfig(lr=4e-4, schedule="one_cycle", weight_decay=1e-4),
        loss=LossConfig("sequence", gamma=0.8, iters=12),
        steps=100_000,
        batch=10,
        precision="bf16",
        folder="runs/procedural",
        save_every=2000,
        validate_every=5000,
        validation={"procedural": "procedural"},
    )

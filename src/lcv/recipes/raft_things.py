"""RAFT's second stage: FlyingThings3D, both passes, from the weights of raft_chairs.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train raft_things --data.root DATASETS
Hardware   the authors': two GPUs of 11 GB.
Result     not yet run.

From here on batch norms keep their statistics. What is watched is Sintel's training half, at 32
iterations; without it, as in raft_chairs.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import raft_chairs
from lcv.train.config import DataConfig, PartConfig, SplitConfig, TrainConfig


def recipe() -> TrainConfig:
    before = raft_chairs.recipe()
    things = PartConfig("things", "raft-things", options={"passes": ["clean", "final"]})
    return replace(
        before,
        model=replace(
            before.model, weights="runs/raft_chairs/weights.safetensors", freeze_batch_norm=True
        ),
        data=DataConfig(source="files", parts=(things,), size=(400, 720)),
        optim=replace(before.optim, lr=1.25e-4),
        batch=6,
        validate_iters=32,
        validation={
            f"sintel-{name}": SplitConfig("sintel", options={"passes": [name]})
            for name in ("clean", "final")
        },
        best="sintel-final/epe",
        folder="runs/raft_things",
    )

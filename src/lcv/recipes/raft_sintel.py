"""RAFT's third stage: Sintel mixed with KITTI, HD1K and Things, from the weights of raft_things.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train raft_sintel --data.root DATASETS
Hardware   the authors': two GPUs of 11 GB.
Result     not yet run.

A pass over complete copies is 293,737 pairs: 71 % Sintel, 13.6 % KITTI, 1.8 % HD1K, 13.7 % Things.
What is watched is Sintel still, though it is trained on, as the authors do.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import raft_things
from lcv.train.config import DataConfig, PartConfig, TrainConfig


def recipe() -> TrainConfig:
    before = raft_things.recipe()
    parts = (
        PartConfig("sintel", "raft-sintel", 100, options={"passes": ["clean", "final"]}),
        PartConfig("kitti", "raft-sintel-kitti", 200),
        PartConfig("hd1k", "raft-sintel-hd1k", 5),
        PartConfig("things", "raft-sintel", 1),
    )
    return replace(
        before,
        model=replace(before.model, weights="runs/raft_things/weights.safetensors"),
        data=DataConfig(source="files", parts=parts, size=(368, 768)),
        optim=replace(before.optim, lr=1.25e-4, weight_decay=1e-5),
        loss=replace(before.loss, gamma=0.85),
        folder="runs/raft_sintel",
    )

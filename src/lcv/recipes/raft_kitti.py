"""RAFT's last stage: KITTI 2015, all 200 training pairs, from the weights of raft_sintel.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train raft_kitti --data.root DATASETS
           `--model.weights raft-sintel` starts from the authors' published file instead.
Hardware   the authors': two GPUs of 11 GB.
Result     not yet run.

What is watched are the 200 pairs that it trains on, as the authors do, at 24 iterations. To hold
some out, give the part, and the split of `validation`, the options scenes vcn-train and vcn-val.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import raft_sintel
from lcv.train.config import DataConfig, PartConfig, SplitConfig, TrainConfig


def recipe() -> TrainConfig:
    before = raft_sintel.recipe()
    return replace(
        before,
        model=replace(before.model, weights="runs/raft_sintel/weights.safetensors"),
        data=DataConfig(
            source="files", parts=(PartConfig("kitti", "raft-kitti"),), size=(288, 960)
        ),
        optim=replace(before.optim, lr=1e-4),
        steps=50_000,
        validate_iters=24,
        validation={"kitti": SplitConfig("kitti")},
        best="kitti/epe",
        folder="runs/raft_kitti",
    )

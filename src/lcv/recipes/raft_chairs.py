"""RAFT's first stage: FlyingChairs from random weights, the authors' numbers.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train raft_chairs --data.root DATASETS
           FlyingChairs below DATASETS, with its split file.
Hardware   the authors': two GPUs of 11 GB. One larger GPU does without torchrun.
Result     not yet run.

The network is RAFT as published, W = I throughout; `--model.inner_product elliptical` trains W from
the first step. As theirs, the schedule is 100 steps longer than the run, and what is watched on the
way is the validation split, at 24 iterations. Without that data,
`--validation '{procedural: procedural}' --best procedural/epe` watches held-out procedural pairs.
"""

from __future__ import annotations

from lcv.train.config import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    SplitConfig,
    TrainConfig,
)


def recipe() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig("raft-large", inner_product="euclidean"),
        data=DataConfig(
            source="files",
            parts=(PartConfig("chairs", "raft-chairs", options={"split": "train"}),),
            size=(368, 496),
        ),
        optim=OptimConfig(
            lr=4e-4, schedule="one_cycle", tail=100, weight_decay=1e-4, eps=1e-8, clip=1.0
        ),
        loss=LossConfig("sequence", gamma=0.8, max_flow=400.0, iters=12),
        steps=100_000,
        batch=10,
        precision="float32",
        seed=1234,
        folder="runs/raft_chairs",
        save_every=5000,
        validate_every=5000,
        validate_iters=24,
        validation={"chairs": SplitConfig("chairs", options={"split": "val"})},
        best="chairs/epe",
    )

"""VCN's first stage: FlyingChairs from random weights, the authors' rates and sizes.

Command    torchrun --nproc-per-node 2 -m lcv.cli.main train vcn_chairs --data.root DATASETS
           FlyingChairs below DATASETS, with its split file.
Hardware   the authors': two GPUs, four pairs each.
Result     not yet run.

Adam without decay or clipping is our AdamW with decay 0 and a bound that no gradient meets.
**Departures:** RAFT's augmentation at VCN's crop stands for VCN's own (affine motion of each frame,
eigen-colours, noise, all growing over the run); images are normalised by fixed means, not by ones
measured over the first thousand steps.
"""

from __future__ import annotations

from lcv.train.config import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    TrainConfig,
)

UNBOUNDED = 1e9


def recipe() -> TrainConfig:
    options = {"md": [4, 4, 4, 4, 4], "fac": 1.0, "heads": True}
    return TrainConfig(
        model=ModelConfig("vcn", inner_product="euclidean", options=options),
        data=DataConfig(
            source="files",
            parts=(PartConfig("chairs", "raft-chairs", options={"split": "train"}),),
            size=(320, 448),
        ),
        optim=OptimConfig(
            lr=1e-3, schedule="steps", drops=(70_000, 130_000), weight_decay=0.0, clip=UNBOUNDED
        ),
        loss=LossConfig("multiscale", iters=None),
        steps=140_000,
        batch=8,
        precision="float32",
        folder="runs/vcn_chairs",
        save_every=5000,
        validate_every=5000,
        validation={"procedural": "procedural"},
    )

"""DDFlow's first stage, without truth: the photometric loss over every pixel, W = I.

Command    lcv train ddflow_stage1a --data.root DATASETS
           MPI Sintel below DATASETS, both passes of its training scenes: 2082 pairs. For a folder
           of one's own frames, or of videos:
           --data.parts '[{"dataset": "frames", "root": "FOLDER", "augmentation": "ddflow"}]'
           --data.parts '[{"dataset": "videos", "root": "FOLDER", "augmentation": "ddflow"}]'
           A smaller --data.size crops frames that are not 320 high and 896 wide. Every pair of
           a video is decoded from the key frame before it; frames written out are read faster.
Hardware   one GPU; memory not yet measured.
Result     not yet run.

The authors' numbers: Adam at 1e-4 without decay or bound, halved after 80,000 steps, batches of 4.
W never moves, for the paper warns of trivial solutions; ddflow_collapse tries it.
**Departure:** the numbers watched on the way are of held-out procedural pairs.
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
    steps = 100_000
    return TrainConfig(
        model=ModelConfig("ddflow", inner_product="elliptical"),
        data=DataConfig(
            source="files",
            parts=(PartConfig("sintel", "ddflow", options={"passes": ["clean", "final"]}),),
            size=(320, 896),
        ),
        optim=OptimConfig(
            lr=1e-4,
            schedule="steps",
            drops=(80_000,),
            weight_decay=0.0,
            clip=UNBOUNDED,
            w_from_step=steps,
        ),
        loss=LossConfig("unsupervised", stage="photometric", iters=None),
        steps=steps,
        batch=4,
        precision="float32",
        folder="runs/ddflow_stage1a",
        save_every=5000,
        validate_every=5000,
        validation={"procedural": "procedural"},
    )

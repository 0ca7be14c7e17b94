"""DDFlow's first stage on one's own films, without truth; judged on the last fifth of each.

Command    lcv train ddflow_films --data.root FOLDER
           FOLDER holds films, or is one. Then the census stage from its weights:
           lcv train ddflow_films --data.root FOLDER --loss.stage census --optim.lr 1e-4 \\
               --model.weights runs/ddflow_films/weights.safetensors --folder runs/ddflow_films_b
Hardware   one GPU, or with patience a CPU. Every pair is decoded from the key frame before it; where
           those are few, write the frames out first, and name them
           --data.parts '[{"dataset": "frames", "augmentation": "ddflow", "options": {"part": "train"}}]'
           --validation.films '{"dataset": "frames", "options": {"part": "held-out"}}'
Result     two films of 330 frames, written out at half size, one H200: films/census 3.55 → 2.87, then
           2.85 after 1,200 steps of the census stage; zero flow has 3.51. In 200 steps on two CPU
           cores it only begins to fall.

The number to watch is films/census, the census loss of both directions over every pixel of held-out
pairs, beside that of zero flow; 0.158 each way is a perfect match.
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
    steps = 2000
    return TrainConfig(
        model=ModelConfig("ddflow", inner_product="elliptical"),
        data=DataConfig(
            source="files",
            root="films",
            parts=(PartConfig("videos", "ddflow", options={"part": "train"}),),
            size=(192, 320),
            workers=2,
        ),
        optim=OptimConfig(
            lr=3e-4, schedule="one_cycle", weight_decay=0.0, clip=1.0, w_from_step=1_000_000
        ),
        loss=LossConfig("unsupervised", stage="photometric", iters=None),
        steps=steps,
        batch=4,
        precision="float32",
        folder="runs/ddflow_films",
        save_every=500,
        validate_every=100,
        validation={"films": SplitConfig("videos", options={"part": "held-out"})},
        best="films/census",
    )

"""The paper's way to LCV: a trained vanilla network, W = I joining it, all of it fine-tuned.

Command    lcv train lcv_finetune --data.root DATASETS
           Begins with the authors' published raft-sintel, which is fetched, and tunes on KITTI 2015.
           `--model.weights FILE` begins elsewhere. For another stage, copy this file and call that
           stage's recipe.
Hardware   as raft_kitti.
Result     not yet run.

Same data, loss and numbers as the stage itself, since the paper gives none of its own; W learns at
the rate of everything else and is not decayed, as decay would pull it towards I. The plain
raft_kitti from the same weights is what to compare with.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import raft_kitti
from lcv.train.config import TrainConfig


def recipe() -> TrainConfig:
    stage = raft_kitti.recipe()
    return replace(
        stage,
        model=replace(stage.model, inner_product="elliptical", weights="raft-sintel"),
        optim=replace(stage.optim, w_lr_factor=1.0, w_weight_decay=0.0, w_from_step=0),
        folder="runs/lcv_finetune",
    )

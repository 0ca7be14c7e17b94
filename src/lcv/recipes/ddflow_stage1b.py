"""DDFlow's second half of stage 1: the census loss where nothing is occluded, W = I still.

Command    lcv train ddflow_stage1b --data.root DATASETS
           Begins with the weights of ddflow_stage1a. From random weights the masks can grow until
           no pixel is left to count, and the loss is 0.
Hardware   one GPU; memory not yet measured.
Result     not yet run.

The rate begins anew at 1e-4 and is halved every 80,000 steps. Departure as in ddflow_stage1a.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ddflow_stage1a
from lcv.train.config import TrainConfig


def recipe() -> TrainConfig:
    before = ddflow_stage1a.recipe()
    steps = 300_000
    return replace(
        before,
        model=replace(before.model, weights="runs/ddflow_stage1a/weights.safetensors"),
        optim=replace(before.optim, drops=(80_000, 160_000, 240_000), w_from_step=steps),
        loss=replace(before.loss, stage="census"),
        steps=steps,
        folder="runs/ddflow_stage1b",
    )

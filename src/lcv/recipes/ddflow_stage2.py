"""DDFlow's last stage: a student on 224×640 patches, taught by ddflow_stage1b, W free.

Command    lcv train ddflow_stage2 --data.root DATASETS
           Teacher and student begin with the weights of ddflow_stage1b; --loss.teacher FILE
           chooses another teacher.
Hardware   one GPU; memory not yet measured.
Result     not yet run.

**Departures:** the teacher runs along on each 320×896 crop, as in the paper; the authors' code
stores its flows of whole images beforehand. Else as in ddflow_stage1a.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ddflow_stage1b
from lcv.train.config import TrainConfig


def recipe() -> TrainConfig:
    before = ddflow_stage1b.recipe()
    return replace(
        before,
        model=replace(before.model, weights="runs/ddflow_stage1b/weights.safetensors"),
        optim=replace(before.optim, w_from_step=0),
        loss=replace(before.loss, stage="distillation"),
        folder="runs/ddflow_stage2",
    )

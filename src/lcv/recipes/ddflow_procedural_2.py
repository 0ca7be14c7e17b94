"""Minutes on a GPU: DDFlow's stage 2 on procedural pairs, distillation on patches, W free.

Command    lcv train ddflow_procedural_2
           Teacher and student begin with the weights of ddflow_procedural_1b.
           `--model.inner_product euclidean` is the same without LCV, to compare with; it wants
           stage 1 run with it too.
Hardware   one GPU; half a minute on an H200 with `--graph true`.
Result     EPE 1.25 px on held-out pairs, 26 % of zero flow's 4.85 (1.28 before); W 0.048 from I.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ddflow_procedural_1b
from lcv.train.config import TrainConfig


def recipe() -> TrainConfig:
    before = ddflow_procedural_1b.recipe()
    return replace(
        before,
        model=replace(before.model, weights="runs/ddflow_procedural_1b/weights.safetensors"),
        optim=replace(before.optim, w_from_step=0),
        # 192×256 of the 256×320 crops.
        loss=replace(before.loss, stage="distillation", patch=(0.75, 0.8)),
        folder="runs/ddflow_procedural_2",
    )

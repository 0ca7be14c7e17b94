"""Minutes on a GPU, without truth or files: DDFlow's stage 1a on procedural pairs, W = I.

Command    lcv train ddflow_procedural_1
Hardware   one GPU; one minute on an H200 with `--graph true`.
Result     EPE on held-out pairs 36 % of zero flow's (1.73 of 4.85 px) after 2,800 steps.

The pairs' truth is known and never trained on: the EPE of log and validation is judged by it. A
higher rate than the authors', for want of their 100,000 steps; and a bound on the gradient.
"""

from __future__ import annotations

from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def recipe() -> TrainConfig:
    steps = 2800
    return TrainConfig(
        model=ModelConfig("ddflow", inner_product="elliptical"),
        data=DataConfig(source="procedural", recipe="moderate", size=(256, 320), ahead=8),
        optim=OptimConfig(
            lr=3e-4, schedule="one_cycle", weight_decay=0.0, clip=1.0, w_from_step=steps
        ),
        loss=LossConfig("unsupervised", stage="photometric", iters=None),
        steps=steps,
        batch=8,
        precision="bf16",
        folder="runs/ddflow_procedural_1",
        save_every=1000,
        validate_every=500,
        validation={"procedural": "procedural"},
    )

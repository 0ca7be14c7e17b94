"""Minutes on a CPU: RAFT-small with LCV on small procedural pairs, from random weights.

Command    lcv train quick
Hardware   two CPU cores.
Result     after 191 to 224 s, 52.0, 55.5 and 54.2 % of the EPE of zero flow (seeds 0, 1, 2).

At the end it says the EPE on 48 held-out scenes of four layers, with textures of their own, and its
share of the EPE of zero flow; curve.png has both over the steps, and the goal of 60 %.

For a first look at what a run is; its weights are no use elsewhere.
"""

from __future__ import annotations

from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def recipe() -> TrainConfig:
    iters = 4  # in minutes, more steps are worth more than RAFT's 12 iterations
    return TrainConfig(
        model=ModelConfig("raft-small", inner_product="elliptical"),
        data=DataConfig(source="procedural", recipe="quick", size=(96, 128), ahead=8),
        # The gradients of the first steps are the largest; AdamW's own 0.999 would remember them for
        # as long as the whole run, and on some seeds learn nothing for a third of it.
        optim=OptimConfig(lr=5e-4, schedule="one_cycle", warmup=0.05, beta2=0.95),
        loss=LossConfig("sequence", gamma=0.8, iters=iters),
        steps=1000,
        batch=2,
        precision="float32",
        folder="runs/quick",
        log_every=25,
        save_every=250,
        validate_every=125,
        validate_iters=iters,  # with more, a network trained with so few drifts away
        validation={"procedural": "procedural"},
        goal=0.6,
    )

"""Minutes on a CPU: RAFT-small with LCV on small procedural pairs, from random weights.

Command    lcv train quick
Hardware   two CPU cores.
Result     EPE 2.88 px on held-out scenes and textures, where zero flow has 5.06 px (57 %), with seed 0
           in 268 s of processor time on one thread, five validations included.

Rate, batch and iterations were chosen among five settings tried, judged by the same held-out scenes
and one seed each; the others ended at 54 to 66 % (more steps or fewer iterations) or did not learn.

For a first look at what a run is; its weights are no use elsewhere.
"""

from __future__ import annotations

from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def recipe() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig("raft-small", inner_product="elliptical"),
        data=DataConfig(source="procedural", recipe="quick", size=(96, 128), ahead=8),
        optim=OptimConfig(lr=5e-4, schedule="one_cycle", warmup=0.1),
        # Fewer than RAFT's 12 iterations cost less, but far fewer than evaluation's diverge there.
        loss=LossConfig("sequence", gamma=0.8, iters=8),
        steps=800,
        batch=2,
        precision="float32",
        folder="runs/quick",
        log_every=25,
        save_every=200,
        validate_every=200,
        validation={"procedural": "procedural"},
    )

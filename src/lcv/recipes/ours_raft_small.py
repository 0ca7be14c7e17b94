"""Our own RAFT-small, as it comes with the package: procedural pairs from random weights.

Command    lcv train ours_raft_small --data.textures PHOTOGRAPHS
           Its twin, the embedded raft-small-vanilla, on the same pairs in the same order:
           lcv train ours_raft_small --data.textures PHOTOGRAPHS --model.inner_product euclidean \\
               --folder runs/ours_raft_small_vanilla
Hardware   one H200: four minutes each, and one to compile.
Result     mean EPE on Middlebury's Grove2, RubberWhale, Urban2 and Venus, 20 iterations: 0.578 px
           with LCV and 0.594 without; KITTI 2015's pair 000010: 3.83 and 3.77.

The photographs are those that weights/textures.json lists by SHA-256; the folder may hold them
under any names. The embedded ones were trained in one process for both, their first 300 steps at
the lower rates of a longer warm-up (2,000 steps to the peak), since how many steps would fit was
only known then.

It goes, with `ours_small` in its place, when weights made by that one come with the package.
"""

from __future__ import annotations

from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def recipe() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig("raft-small", inner_product="elliptical"),
        data=DataConfig(
            source="procedural",
            recipe="fine",
            textures="textures",
            detailed=True,
            size=(288, 384),
            ahead=8,
        ),
        optim=OptimConfig(lr=6e-4, schedule="one_cycle", weight_decay=1e-4),
        loss=LossConfig("sequence", gamma=0.8, iters=10),
        steps=8451,
        batch=12,
        precision="bf16",
        graph=True,
        compile=True,
        folder="runs/ours_raft_small",
        save_every=1000,
        validate_every=1000,
        validation={"procedural": "procedural"},
    )

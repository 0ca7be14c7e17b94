"""Our own RAFT-small with LCV, and its twin without: stages A to C of ours_large.

Command    lcv train ours_small --data.textures PHOTOGRAPHS
           Its twin without LCV, on the same pairs in the same order:
           lcv train ours_small --data.textures PHOTOGRAPHS --model.inner_product euclidean \\
               --folder runs/ours_small_vanilla
           Both at once, each batch made once: `lcv.train.run_stages_together([lcv, vanilla])`.
Hardware   one H200: 15 minutes for both at once, without validation.
Result     mean EPE on Middlebury's Grove2, RubberWhale, Urban2 and Venus, 20 iterations: 0.409 px
           with LCV and 0.405 without; KITTI 2015's pair 000010: 3.05 and 2.92. The run ended 15 steps
           before its last.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ours_large
from lcv.train.config import Stages, one_decay

# As many as fit into a quarter of an hour, for both twins.
STEPS = {"A": 13_000, "B": 6_500, "C": 3_500}


def recipe() -> Stages:
    stages = {
        name: replace(
            stage,
            model=replace(stage.model, name="raft-small"),
            steps=STEPS[name],
            validate_every=6500,
            folder="runs/ours_small",
        )
        for name, stage in ours_large.recipe().items()
        if name in STEPS
    }
    return one_decay(stages, lr=6e-4)

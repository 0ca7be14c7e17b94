"""Our own RAFT-small with LCV, in the stages of ours_large: what is to follow ours_raft_small.

Command    lcv train ours_small --data.textures PHOTOGRAPHS
           Its twin without LCV, on the same pairs in the same order:
           lcv train ours_small --data.textures PHOTOGRAPHS --model.inner_product euclidean \\
               --folder runs/ours_small_vanilla
           Both at once, each batch made once: `lcv.train.run_stages_together([lcv, vanilla])`.
Hardware   one H200; not yet timed.
Result     not yet run.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ours_large
from lcv.train.config import Stages, one_decay

# Meant to take both twins half an hour at most.
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
    }
    return one_decay(stages, lr=6e-4)

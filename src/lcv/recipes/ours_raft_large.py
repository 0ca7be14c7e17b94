"""Our own RAFT-large with LCV, first of two stages: procedural pairs, from a warm start without LCV.

Command    lcv train ours_raft_large --data.textures PHOTOGRAPHS --model.weights WARM_START
           WARM_START is raft-large-procedural.safetensors, a RAFT-large after 8,100 steps on
           procedural pairs; without it, more steps at a higher rate are needed.
Hardware   one H200: five minutes, and one to compile.
Result     mean EPE on Middlebury's Grove2, RubberWhale, Urban2 and Venus, 20 iterations: 0.412 px
           (0.472 before); KITTI 2015's pair 000010: 2.83 (3.00).

The photographs are those that weights/textures.json lists by SHA-256. In the run measured, the
first 200 steps had the lower rates of a longer warm-up (1,000 steps to the peak).

It goes, with `ours_large` in its place, when weights made by that one come with the package.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ours_raft_small
from lcv.train.config import TrainConfig

WARM_START = (
    "this recipe's numbers are those of a warm start, a RAFT-large after 8,100 steps on procedural "
    "pairs; from random weights its steps and rate are too few and too low"
)


def recipe() -> TrainConfig:
    small = ours_raft_small.recipe()
    return replace(
        small,
        model=replace(small.model, name="raft-large"),
        data=replace(small.data, recipe="hidden", size=(320, 448)),
        optim=replace(small.optim, lr=2.5e-4),
        steps=4010,
        folder="runs/ours_raft_large",
    )

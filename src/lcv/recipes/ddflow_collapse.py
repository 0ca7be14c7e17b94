"""What the paper warns of: unsupervised training with W free from the first step.

Command    lcv train ddflow_collapse
           Compare with ddflow_procedural_1, from which it differs by W alone: the log has W's
           smallest and largest eigenvalues, its distance from I and the angle of P.
Hardware   one GPU; a few minutes on a large one.
Result     not yet run.
"""

from __future__ import annotations

from dataclasses import replace

from lcv.recipes import ddflow_procedural_1
from lcv.train.config import TrainConfig


def recipe() -> TrainConfig:
    sound = ddflow_procedural_1.recipe()
    return replace(sound, optim=replace(sound.optim, w_from_step=0), folder="runs/ddflow_collapse")

"""The base run of an ablation: its settings, and how often it validates and saves."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.studies.ablation_base import network_for, paced, procedural_base
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig


def test_the_base_is_a_short_run_at_a_small_rate():
    """The defaults of `lcv ablate`: a study is joined only by one of the same numbers."""
    assert procedural_base("raft-small", "w.pth") == TrainConfig(
        model=ModelConfig("raft-small", weights="w.pth", freeze_batch_norm=True),
        data=DataConfig(recipe="training", size=(256, 320), ahead=8),
        optim=OptimConfig(lr=1e-4, weight_decay=1e-5),
        loss=LossConfig("sequence", gamma=0.8, iters=8),
        steps=1500,
        batch=6,
        precision="bf16",
        folder="",
    )
    assert procedural_base("ddflow", None).loss.iters is None  # it does not iterate


@pytest.mark.parametrize(
    ("steps", "every", "expected"),
    [  # steps between validations, checkpoints, lines of the log
        (1500, None, (250, 500, 100)),
        (300, None, (50, 300, 100)),
        (100, None, (16, 100, 50)),
        (12, None, (2, 12, 6)),
        (5, None, (1, 5, 2)),
        (1, None, (1, 1, 1)),
        (1500, 7, (7, 500, 100)),
    ],
)
def test_a_run_is_validated_six_times_and_saved_every_500_steps(steps, every, expected):
    base = TrainConfig(steps=steps)
    found = paced(base, every)
    assert (found.validate_every, found.save_every, found.log_every) == expected
    same = {name: getattr(base, name) for name in ("validate_every", "save_every", "log_every")}
    assert replace(found, **same) == base


def test_asking_a_network_leaves_the_random_numbers():
    state = torch.get_rng_state()
    network_for(ModelConfig("raft-small"))
    assert torch.equal(torch.get_rng_state(), state)

"""DDFlow's recipes: the authors' numbers, stages in their order, W free in the last alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from lcv.recipes import load_recipe
from lcv.train.config import STAGES
from lcv.train.optim import rate_at
from lcv.train.unsupervised import patch_size

# DDFlow's README and config.ini: steps, stage, the rate's divisors; and whether W is free.
AUTHORS = {
    "ddflow_stage1a": (100_000, "photometric", {0: 1, 79_999: 1, 80_000: 2, 99_999: 2}, False),
    "ddflow_stage1b": (300_000, "census", {79_999: 1, 80_000: 2, 160_000: 4, 240_000: 8}, False),
    "ddflow_stage2": (300_000, "distillation", {79_999: 1, 80_000: 2, 240_000: 8}, True),
}
SHORT = ("ddflow_procedural_1", "ddflow_procedural_1b", "ddflow_procedural_2")


@pytest.mark.parametrize("name", AUTHORS)
def test_the_stages_have_the_authors_numbers(name):
    config = load_recipe(name)
    steps, stage, divisors, free = AUTHORS[name]
    assert (config.steps, config.batch, config.data.size) == (steps, 4, (320, 896))
    assert (config.loss.name, config.loss.stage) == ("unsupervised", stage)
    assert (config.loss.iters, config.loss.teacher) == (None, None)
    assert [part.augmentation for part in config.data.parts] == ["ddflow"]
    for step, divisor in divisors.items():
        assert rate_at(config.optim, step, steps) == pytest.approx(1e-4 / divisor)
    assert (config.optim.eps, config.optim.weight_decay) == (1e-8, 0.0)
    assert config.optim.w_from_step == (0 if free else steps)
    assert config.model.inner_product == "elliptical"
    assert patch_size(config.data.size, config.loss.patch) == (224, 640)


def test_each_stage_begins_where_the_one_before_ended():
    for stages in (tuple(AUTHORS), SHORT):
        configs = [load_recipe(name) for name in stages]
        assert configs[0].model.weights is None
        for before, after in pairwise(configs):
            assert after.model.weights == f"{before.folder}/weights.safetensors"


def test_the_short_stages_free_w_in_the_last_alone():
    stages = [load_recipe(name) for name in SHORT]
    assert [config.loss.stage for config in stages] == list(STAGES)
    assert [config.optim.w_from_step >= config.steps for config in stages] == [True, True, False]
    assert patch_size(stages[2].data.size, stages[2].loss.patch) == (192, 256)


def test_the_collapse_differs_from_its_stage_by_w_alone():
    sound, freed = load_recipe(SHORT[0]), load_recipe("ddflow_collapse")
    assert freed.optim.w_from_step == 0
    held = replace(freed.optim, w_from_step=sound.optim.w_from_step)
    assert replace(freed, optim=held, folder=sound.folder) == sound

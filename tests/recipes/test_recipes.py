"""Recipes: all of them load, name only what there is, and hold the authors' numbers."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from itertools import pairwise
from zlib import crc32

import pytest
import torch

from lcv.data.augment import AUGMENTATIONS
from lcv.data.synthetic.recipe import RECIPES
from lcv.errors import ArgumentError, FileError
from lcv.models.build import build
from lcv.recipes import config_from, load_recipe, load_stages, recipe_names
from lcv.train import PartConfig, SplitConfig, TrainConfig
from lcv.train.config import by_dotted_name
from lcv.train.files import DATASETS
from lcv.train.optim import rate_at

DATA = ("chairs", "things", "sintel", "kitti")


def test_the_stages_of_both_networks_are_there():
    stages = {f"{net}_{data}" for net in ("raft", "vcn") for data in DATA}
    assert stages | {"lcv_finetune", "procedural", "quick"} <= set(recipe_names())
    assert "stored" not in recipe_names()


STAGES = [(name, stage) for name in recipe_names() for stage in load_stages(name)]


@pytest.mark.parametrize(("name", "stage"), STAGES)
def test_a_recipe_names_only_what_there_is(name, stage):
    config = load_stages(name)[stage]
    with torch.device("meta"):
        build(config.model.name, config.model.inner_product, **config.model.options)
    assert config.data.recipe in RECIPES
    for part in config.data.parts:
        assert part.augmentation in AUGMENTATIONS
        assert set(part.options) <= set(inspect.signature(DATASETS[part.dataset]).parameters)
    assert (config.data.source == "files") == bool(config.data.parts)
    assert config.best.partition("/")[0] in config.validation
    for split in config.validation.values():
        if isinstance(split, SplitConfig):
            assert set(split.options) <= set(inspect.signature(DATASETS[split.dataset]).parameters)
    assert config.folder == f"runs/{name}"


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_command_hardware_and_result(name):
    module = __import__(f"lcv.recipes.{name}", fromlist=["recipe"])
    for word in ("Command", f"train {name}", "Hardware", "Result"):
        assert word in module.__doc__


@pytest.mark.parametrize(("name", "stage"), STAGES)
def test_a_configuration_comes_back_from_json(name, stage):
    config = load_stages(name)[stage]
    assert config_from(json.loads(json.dumps(config.as_dict()))) == config


# RAFT's train_standard.sh: steps, batch, crop, rate, decay, gamma, and whether norms are frozen.
RAFT = {
    "raft_chairs": (100_000, 10, (368, 496), 4e-4, 1e-4, 0.8, False),
    "raft_things": (100_000, 6, (400, 720), 1.25e-4, 1e-4, 0.8, True),
    "raft_sintel": (100_000, 6, (368, 768), 1.25e-4, 1e-5, 0.85, True),
    "raft_kitti": (50_000, 6, (288, 960), 1e-4, 1e-5, 0.85, True),
}


@pytest.mark.parametrize("name", RAFT)
def test_rafts_stages_have_the_authors_numbers(name):
    config = load_recipe(name)
    found = (
        config.steps,
        config.batch,
        config.data.size,
        config.optim.lr,
        config.optim.weight_decay,
        config.loss.gamma,
        config.model.freeze_batch_norm,
    )
    assert found == RAFT[name]
    assert (config.loss.name, config.loss.iters, config.optim.clip) == ("sequence", 12, 1.0)
    assert (config.optim.eps, config.seed, config.validate_every) == (1e-8, 1234, 5000)
    assert config.model.inner_product == "euclidean"
    # A rise of 5 % from a 25th of the rate, then down to nothing 100 steps after the last.
    assert (config.optim.schedule, config.optim.warmup, config.optim.tail) == (
        "one_cycle",
        0.05,
        100,
    )
    assert rate_at(config.optim, 0, config.steps) == pytest.approx(config.optim.lr / 25)
    peak = round(0.05 * (config.steps + 100)) - 1
    assert rate_at(config.optim, peak, config.steps) == pytest.approx(config.optim.lr)
    assert rate_at(config.optim, config.steps + 99, config.steps) < 2e-9


def test_rafts_stages_watch_what_the_authors_watch():
    watched = {
        name: (
            sorted({split.dataset for split in load_recipe(name).validation.values()}),
            load_recipe(name).validate_iters,
        )
        for name in RAFT
    }
    assert watched == {
        "raft_chairs": (["chairs"], 24),
        "raft_things": (["sintel"], 32),
        "raft_sintel": (["sintel"], 32),
        "raft_kitti": (["kitti"], 24),
    }


def test_each_stage_begins_where_the_one_before_ended():
    for before, after in (
        ("raft_chairs", "raft_things"),
        ("raft_things", "raft_sintel"),
        ("raft_sintel", "raft_kitti"),
        ("vcn_chairs", "vcn_things"),
        ("vcn_things", "vcn_sintel"),
        ("vcn_things", "vcn_kitti"),
    ):
        ended = f"{load_recipe(before).folder}/weights.safetensors"
        assert load_recipe(after).model.weights == ended


def test_rafts_mixture_has_the_published_shares():
    # Pairs of complete copies: a pass of Sintel, KITTI 2015, HD1K, a pass of Things.
    one_pass = {"sintel": 1041, "kitti": 200, "hd1k": 1047, "things": 40_302}
    counts: dict[str, int] = {}
    for part in load_recipe("raft_sintel").data.parts:
        passes = len(part.options.get("passes", ["clean"]))
        counts[part.dataset] = part.weight * passes * one_pass[part.dataset]
    total = sum(counts.values())
    assert total == 293_737
    shares = {name: round(100 * count / total, 1) for name, count in counts.items()}
    assert shares == {"sintel": 70.9, "kitti": 13.6, "hd1k": 1.8, "things": 13.7}


# In VCN's fine-tuning the rate falls, begins anew, and falls again.
FALL = {0: 1, 29_999: 1, 30_000: 2, 40_000: 4, 50_000: 8, 60_000: 16, 69_999: 16}
CYCLES = FALL | {70_000 + step: divisor for step, divisor in FALL.items()}
# VCN's main.py: steps, batch, crop, and the rate at some steps of the authors' counter.
VCN = {
    "vcn_chairs": (140_000, 8, (320, 448), {0: 1, 69_999: 1, 70_000: 2, 130_000: 4}),
    "vcn_things": (80_000, 8, (320, 448), {0: 4, 49_999: 4, 50_000: 8, 79_999: 8}),
    "vcn_sintel": (140_000, 16, (320, 576), CYCLES),
    "vcn_kitti": (140_000, 16, (256, 768), CYCLES),
}
SEARCH = {"vcn_chairs": (4, 1), "vcn_things": (4, 1), "vcn_sintel": (7, 1.4), "vcn_kitti": (8, 2)}


@pytest.mark.parametrize("name", VCN)
def test_vcns_stages_have_the_authors_numbers(name):
    config = load_recipe(name)
    steps, batch, crop, divisors = VCN[name]
    assert (config.steps, config.batch, config.data.size) == (steps, batch, crop)
    for step, divisor in divisors.items():
        assert rate_at(config.optim, step, steps) == pytest.approx(1e-3 / divisor)
    assert (config.loss.name, config.loss.iters) == ("multiscale", None)
    assert (config.optim.weight_decay, config.model.freeze_batch_norm) == (0.0, False)
    coarsest, fac = SEARCH[name]
    assert config.model.options == {"md": [coarsest, 4, 4, 4, 4], "fac": fac, "heads": True}


def test_vcns_mixtures_have_the_authors_weights():
    def weights(name):
        parts = load_recipe(name).data.parts
        return [(part.dataset, part.options.get("year", 2015), part.weight) for part in parts]

    assert weights("vcn_kitti") == [("kitti", 2015, 50), ("kitti", 2012, 50)]
    assert {(name, weight) for name, _, weight in weights("vcn_sintel")} == {
        ("kitti", 200),
        ("hd1k", 40),
        ("sintel", 150),
        ("chairs", 2),
        ("things", 1),
    }


def test_fine_tuning_differs_from_its_stage_by_w_alone():
    stage, tuned = load_recipe("raft_kitti"), load_recipe("lcv_finetune")
    assert tuned.model.inner_product == "elliptical"
    assert tuned.model.weights == "raft-sintel"
    assert (tuned.optim.w_lr_factor, tuned.optim.w_weight_decay) == (1.0, 0.0)
    assert replace(tuned, model=stage.model, folder=stage.folder) == stage


def test_a_recipe_of_ones_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from dataclasses import replace\n"
        "from lcv.recipes import load_recipe\n"
        "def recipe():\n"
        "    return replace(load_recipe('quick'), batch=3)\n"
    )
    assert load_recipe(path) == replace(load_recipe("quick"), batch=3)
    path.write_text("recipes = 1\n")
    with pytest.raises(ArgumentError, match="mine.py: has no function recipe"):
        load_recipe(path)
    path.write_text("def recipe():\n    return {}\n")
    with pytest.raises(
        ArgumentError, match="recipe.. returned dict, wanted lcv.train.TrainConfig, or several"
    ):
        load_recipe(path)
    path.write_text("import dataclasses\ndef recipe(:\n    pass\n")
    with pytest.raises(FileError, match=r"mine.py: not Python: invalid syntax \(mine.py, line 2\)"):
        load_recipe(path)
    path.write_text("def recipe():\n    x = 1\n    return y\n")
    with pytest.raises(FileError, match="mine.py: fails in line 3: NameError: name 'y' is not"):
        load_recipe(path)
    with pytest.raises(FileError, match="other.py: there is no such file"):
        load_recipe(tmp_path / "other.py")


@pytest.mark.parametrize(
    ("name", "decays"), [("ours_large", ("ABC", "DE")), ("ours_small", ("ABC",))]
)
def test_our_own_recipes_begin_with_nothing_and_each_decay_ends_at_0(name, decays):
    stages = load_stages(name)
    assert "".join(stages) == "".join(decays)
    assert stages["A"].model.weights is None
    for names in decays:
        rates = [(stages[n].optim.lr, stages[n].optim.lr_end) for n in names]
        assert all(a[1] == b[0] for a, b in pairwise(rates))
        assert rates[-1][1] == 0
    assert len({c.seed for c in stages.values()}) == len(stages)  # no pair comes twice
    assert {c.ema for c in stages.values()} == {0.999}
    weights = [(c.data.occluded_weight, c.data.out_of_frame_weight) for c in stages.values()]
    assert weights == [(0, 0), *[(1, 1)] * (len(stages) - 1)]


def test_a_recipe_of_several_stages_is_refused_where_one_is_wanted():
    with pytest.raises(
        ArgumentError, match="ours_large: has the stages A, B, C, D, E, wanted a recipe"
    ):
        load_recipe("ours_large")


def test_a_runs_configuration_is_a_recipe(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(load_recipe("raft_sintel").as_dict()))
    assert load_recipe(path) == load_recipe("raft_sintel")
    path.write_text("{")
    with pytest.raises(FileError, match="config.json: is not JSON"):
        load_recipe(path)
    for stages in ("5", "{}"):
        path.write_text(f'{{"stages": {stages}}}')
        with pytest.raises(
            ArgumentError, match=f"config.json: stages is {stages}, wanted stages by"
        ):
            load_stages(path)
    with pytest.raises(FileError, match="cannot be read: No such file"):
        load_recipe(tmp_path / "none.json")


def test_an_unknown_recipe_names_the_known_ones():
    with pytest.raises(ArgumentError, match="no recipe 'raft_kiti' .did you mean raft_kitti"):
        load_recipe("raft_kiti")
    with pytest.raises(
        ArgumentError, match="there are .*lcv_finetune, .*procedural, quick, raft_ch"
    ):
        load_recipe("zzz")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optim": {"lrr": 1.0}}, "there is no optim.lrr, wanted lr"),
        ({"zzz": 1}, "there is no zzz, wanted one of model, data"),
        ({"steps": "many"}, "steps is 'many', wanted int"),
        ({"steps": True}, "steps is True, wanted int"),
        ({"data": {"size": [1, 2, 3]}}, r"data.size is \[1, 2, 3\], wanted 2 values"),
        ({"data": {"size": [1, "2"]}}, r"data.size\[1\] is '2', wanted int"),
        ({"data": {"parts": [{"dataset": "x"}]}}, r"data.parts\[0\] has no augmentation"),
        ({"data": {"parts": {}}}, "data.parts is {}, wanted tuple"),
        ({"model": 3}, "model is int, wanted names and values"),
        ({"validation": {"x": 3}}, "validation.x is 3, wanted str"),
        ({"optim": {"lr": 10**400}}, r"optim.lr is 10+\.\.\.0+, wanted float"),
        ({"loss": {"iters": 1.5}}, "loss.iters is 1.5, wanted int"),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(values, message):
    with pytest.raises(ArgumentError, match=message):
        config_from(values)


def test_what_a_configuration_leaves_out_has_its_default():
    values = {"steps": 7, "optim": {"lr": 1}, "data": {"parts": [{**PART, "weight": 2}]}}
    config = config_from(values)
    assert config.steps == 7
    assert isinstance(config.optim.lr, float)
    assert config.data.parts == (PartConfig("sintel", "raft-sintel", 2),)
    assert replace(config, steps=10_000, optim=TrainConfig().optim, data=TrainConfig().data) == (
        TrainConfig()
    )


PART = {"dataset": "sintel", "augmentation": "raft-sintel"}

# Check sums of what each recipe sets: commands in docs/ and cards of weights name them. Who changes
# one on purpose writes its new sum here.
NUMBERS = {
    "ddflow_collapse": 0xA77F658B,
    "ddflow_films": 0xDDE4AF92,
    "ddflow_procedural_1": 0xB763D2F9,
    "ddflow_procedural_1b": 0xE0C31A85,
    "ddflow_procedural_2": 0x9F4E250E,
    "ddflow_stage1a": 0xA6B70786,
    "ddflow_stage1b": 0x15970752,
    "ddflow_stage2": 0x64F21588,
    "lcv_finetune": 0xC6CD5BC2,
    "ours_large": 0x83183FD3,
    "ours_small": 0xBC622372,
    "procedural": 0x2DE271E2,
    "quick": 0xA8893D47,
    "raft_chairs": 0x941AF641,
    "raft_kitti": 0xDCEB1E2F,
    "raft_sintel": 0x6AC83EA5,
    "raft_things": 0xB3CE931C,
    "vcn_chairs": 0xE3137F57,
    "vcn_kitti": 0x3C6EC2F1,
    "vcn_sintel": 0xFB53F3A2,
    "vcn_things": 0x73FBB5CA,
}


def test_a_name_means_the_same_run_for_ever():
    usual = by_dotted_name(TrainConfig().as_dict())
    found = {}
    for name in recipe_names():
        flat = {k: by_dotted_name(stage.as_dict()) for k, stage in load_stages(name).items()}
        own = [(k, {n: v for n, v in each.items() if v != usual[n]}) for k, each in flat.items()]
        found[name] = crc32(repr(own).encode())
    assert found == NUMBERS

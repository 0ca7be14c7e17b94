"""The card of trained weights: from which file, under which licence, by what, and how good."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import lcv
from lcv.errors import WeightsError
from lcv.models.cards import Card, save_weights
from lcv.models.published import PUBLISHED, sha256_of
from lcv.train import ModelConfig, OptimConfig, run
from lcv.train.network import make_model
from lcv.train.origin import last_scores, start_of
from testing.shared import shared


@pytest.fixture
def begun(tmp_path) -> Path:
    """Weights to begin with, and their card."""
    path = tmp_path / "secret" / "begun.safetensors"
    path.parent.mkdir()
    card = Card(
        data="sprites", licence="BSD-3-Clause", scores={"x": 1}, notes=["of the old"], seed=9
    )
    save_weights(lcv.build("raft-small", inner_product="euclidean"), path, card)
    return path


def card_at(folder: str) -> dict:
    return json.loads((Path(folder) / "weights.json").read_text(encoding="utf-8"))


def test_the_card_tells_source_licence_commit_scores_and_recipe(tiny, begun):
    config = tiny(
        model=ModelConfig("raft-small", weights=str(begun)),
        steps=2,
        validate_every=1,
        validate_iters=1,
        validation={"procedural": "procedural"},
    )
    sha256 = sha256_of(begun)
    run(config, device="cpu", until=1)
    run(config, resume="auto", device="cpu")
    card = card_at(config.folder)
    assert card["source"] == {"file": "begun.safetensors", "sha256": sha256}
    assert card["licence"] == "BSD-3-Clause"
    assert card["data"] == "sprites; then procedural quick"
    assert card["seed"] == config.seed
    assert card["recipe"] == (
        "from begun.safetensors, 2 steps of 2 pairs at 64×64, 2 iterations, sequence loss, "
        "adamw, one_cycle to 0.0004, float32"
    )
    ((words, numbers),) = card["scores"].items()
    assert words == "validation after step 2, 1 iteration"
    assert {"procedural/epe", "procedural/zero_flow_epe"} <= set(numbers)
    assert card["notes"] == [
        "begun.safetensors: no W in the file: it starts at W = I, which changes nothing until trained"
    ]
    assert "secret" not in json.dumps(card)
    root = Path(lcv.__file__).parents[2]
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        head = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        assert card["commit"].startswith(head)
    # Moved meanwhile, it is still the file that the run began with.
    elsewhere = begun.rename(begun.with_name("renamed.safetensors"))
    run(replace(config, model=replace(config.model, weights=str(elsewhere))), "auto", device="cpu")
    assert card_at(config.folder) == card


def test_the_card_tells_the_whole_history_and_how_far_it_came(tiny, tmp_path):
    optim = OptimConfig(lr=4e-4, lr_end=1e-4, schedule="linear")
    config = tiny(optim=optim, name="B", ema=0.9, folder=str(tmp_path / "here"))
    run(config, device="cpu", until=4)
    stopped = tmp_path / "here" / "stopped.safetensors"
    said = json.loads(stopped.with_suffix(".json").read_text(encoding="utf-8"))
    assert said["progress"] == {"stage": "B", "step": 4, "steps": 6}
    assert said["stored_as"] == "torch.float16"
    there = replace(config, model=ModelConfig("raft-small", weights=str(stopped)), first_step=4)
    run(replace(there, folder=str(tmp_path / "there")), device="cpu")
    card = card_at(str(tmp_path / "there"))
    rest = "2 iterations, sequence loss, adamw, linear 0.0004 to 0.0001, weights averaged (0.9), float32"
    assert card["recipe"] == (
        f"from random weights, steps 1 to 4 of 6 of 2 pairs at 64×64, {rest}; then steps 5 to 6 of 6 "
        f"of 2 pairs at 64×64, fresh moments of the optimiser, {rest}"
    )
    assert card["data"] == "procedural quick"
    assert card["progress"] == {"stage": "B", "step": 6, "steps": 6}
    assert card["notes"][-1].startswith("begins after step 4, which was taken elsewhere")
    # What has been gone on with is done there; here the rest removes what was left for others.
    run(config, resume="auto", device="cpu")
    assert not stopped.exists()


def test_random_weights_have_no_source(tiny):
    config = tiny(steps=1)
    run(config, device="cpu")
    card = card_at(config.folder)
    assert (card["source"], card["licence"], card["scores"]) == (None, "", {})
    assert card["recipe"].startswith("from random weights, 1 step of 2 pairs at")


def test_a_published_checkpoints_licence_and_data_travel(tiny):
    weights = shared("weights", "raft-small.pth")
    start = start_of(tiny(model=ModelConfig("raft-small", weights=str(weights))), [])
    assert start is not None
    published = PUBLISHED["raft-small-things"]
    assert start.source == {"file": "raft-small.pth", "sha256": published.sha256}
    assert (start.licence, start.data) == (published.licence, published.data)


def test_the_last_validation_is_the_one_that_counts(tiny):
    entries = [
        {"kind": "validation", "step": 2, "a/epe": 3.0},
        {"kind": "validation", "step": 4, "a/epe": 2.0},
        {"kind": "train", "step": 4, "loss": 1.0},
    ]
    assert last_scores(entries, tiny()) == {"validation after step 4": {"a/epe": 2.0}}
    assert last_scores(entries[2:], tiny()) == {}


def test_weights_of_another_network_are_named(tiny, begun):
    with pytest.raises(WeightsError, match="weights of raft-small, wanted those of raft-large"):
        make_model(tiny(model=ModelConfig("raft-large", weights=str(begun))))

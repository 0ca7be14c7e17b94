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
from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, PartConfig, run
from lcv.train.network import make_model
from lcv.train.origin import card_of, commit_words, last_scores, recipe_words, start_of
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
    assert list(last_scores(entries, tiny(validate_iters=3))) == [
        "validation after step 4, 3 iterations"
    ]


@pytest.mark.parametrize(
    ("changes", "step", "words"),
    [
        (
            {},
            6,
            "6 steps of 2 pairs at 64×64, 2 iterations, sequence loss, adamw, one_cycle to 0.0004",
        ),
        (
            {"steps": 1, "batch": 1, "loss": LossConfig(iters=1)},
            1,
            "1 step of 1 pair at 64×64, 1 iteration, sequence loss, adamw, one_cycle to 0.0004",
        ),
        (
            {"loss": LossConfig("unsupervised", iters=None, stage="photometric")},
            5,
            "steps 1 to 5 of 6 of 2 pairs at 64×64, unsupervised loss (photometric), adamw, "
            "one_cycle to 0.0004",
        ),
        (
            {"first_step": 6, "data": DataConfig(occluded_weight=0.5, size=(64, 96))},
            6,
            "steps 7 to 6 of 6 of 2 pairs at 64×96, fresh moments of the optimiser, 2 iterations, "
            "sequence loss, hidden pixels count 0.5, departed ones 1, adamw, one_cycle to 0.0004",
        ),
        (
            {"data": DataConfig(out_of_frame_weight=0.25, size=(64, 64)), "ema": 0.99},
            6,
            "6 steps of 2 pairs at 64×64, 2 iterations, sequence loss, hidden pixels count 1, "
            "departed ones 0.25, adamw, one_cycle to 0.0004, weights averaged (0.99)",
        ),
        (
            {"optim": OptimConfig("sgd", lr=0.1, lr_end=0.01, schedule="linear")},
            6,
            "6 steps of 2 pairs at 64×64, 2 iterations, sequence loss, sgd, linear 0.1 to 0.01",
        ),
    ],
)
def test_a_recipe_in_words(tiny, changes, step, words):
    assert recipe_words(tiny(**changes), step) == f"{words}, float32"


def test_a_card_goes_on_with_the_one_before(tiny, monkeypatch):
    monkeypatch.setattr("lcv.train.origin.commit_words", lambda: "c2")
    parts = (PartConfig("sintel", "raft-sintel", weight=3), PartConfig("kitti", "raft-kitti"))
    config = tiny(data=DataConfig("files", parts=parts, size=(64, 64)), seed=4, name="B")
    words = recipe_words(config, 6)
    start = Card("chairs", "begun", "c1", 9, "MIT", {"old": 1}, ["a"], {"file": "f", "sha256": "0"})
    assert card_of(config, start, 6, {"new": 2}, ["b"]) == Card(
        data="chairs; then 3×sintel + 1×kitti",
        recipe=f"begun (commit c1); then {words}",
        commit="c2",
        seed=4,
        licence="MIT",
        scores={"new": 2},
        notes=["a", "b"],
        source={"file": "f", "sha256": "0"},
        progress={"stage": "B", "step": 6, "steps": 6},
    )
    for before in ("c2", ""):
        again = card_of(config, replace(start, commit=before), 6, {}, [])
        assert again.recipe == f"begun; then {words}"
    same = replace(start, recipe="", data="chairs; then 3×sintel + 1×kitti")
    card = card_of(config, same, 6, {}, [])
    assert (card.data, card.recipe) == (same.data, f"from f, {words}")
    assert card_of(config, None, 6, {}, []).recipe == f"from random weights, {words}"
    assert card_of(tiny(), None, 6, {}, []).data == "procedural quick"


@pytest.mark.parametrize(
    ("commit", "modified", "words"),
    [(None, None, ""), ("c1", False, "c1"), ("c1", True, "c1, with changes")],
)
def test_the_commit_in_words(monkeypatch, commit, modified, words):
    found = {"commit": commit, "modified": modified}
    monkeypatch.setattr("lcv.train.origin.provenance", lambda: found)
    assert commit_words() == words


def test_weights_of_another_network_are_named(tiny, begun):
    with pytest.raises(WeightsError, match="weights of raft-small, wanted those of raft-large"):
        make_model(tiny(model=ModelConfig("raft-large", weights=str(begun))))

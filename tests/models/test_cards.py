"""Cards lie beside weights, say where they come from, and follow them into other files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import lcv
from lcv.errors import FileError, WeightsError
from lcv.models import cards as module
from lcv.models.cards import Card, card_from, card_path, in_half, save_weights
from lcv.models.published import PUBLISHED, sha256_of
from lcv.version import __version__


@pytest.fixture(scope="module")
def model():
    return lcv.build("raft-small", "euclidean")


def test_where_a_card_is():
    assert card_path("a/raft.safetensors") == Path("a/raft.json")
    assert card_path("a/raft.pth") == Path("a/raft.pth.json")


def test_all_that_a_card_says(model, tmp_path):
    path = tmp_path / "a.safetensors"
    sha256 = save_weights(model, path)
    plain = {
        "file": "a.safetensors",
        "sha256": sha256_of(path),
        "lcv": __version__,
        "model": {"name": "raft-small", "inner_product": "euclidean", "options": {}},
        "parameters": sum(p.numel() for p in model.parameters()),
        "stored_as": "torch.float32",
        "data": "",
        "recipe": "",
        "commit": "",
        "seed": None,
        "licence": "",
        "scores": {},
        "notes": [],
        "source": None,
        "progress": None,
    }
    assert sha256 == plain["sha256"]
    assert (tmp_path / "a.json").read_text() == json.dumps(plain, indent=2) + "\n"
    card = Card("d", "r", "c", 4, "l", {"epe": 1.5}, ["n"], {"file": "f"}, {"step": 3})
    half = save_weights(model, path, card, half=True, overwrite=True)
    said = json.loads((tmp_path / "a.json").read_text())
    assert said == {
        **plain,
        "sha256": half,
        "stored_as": "torch.float16",
        "data": "d",
        "recipe": "r",
        "commit": "c",
        "seed": 4,
        "licence": "l",
        "scores": {"epe": 1.5},
        "notes": ["n"],
        "source": {"file": "f"},
        "progress": {"step": 3},
    }


def test_nothing_is_overwritten_unasked(model, tmp_path):
    with pytest.raises(WeightsError, match=r"weights are written as \.safetensors, got '\.pth'"):
        save_weights(model, tmp_path / "a.pth")
    for there in ("a.safetensors", "a.json"):
        (tmp_path / there).write_text("mine")
        with pytest.raises(FileError, match="exists already"):
            save_weights(model, tmp_path / "a.safetensors")
        assert [path.name for path in tmp_path.iterdir()] == [there]
        (tmp_path / there).unlink()


def test_a_card_follows_its_weights(model, tmp_path, monkeypatch):
    source = tmp_path / "a.safetensors"
    card = Card(data="chairs", seed=7, scores={"epe": 2.0}, notes=["first"], progress={"step": 1})
    sha256 = save_weights(model, source, card)
    origin = {"file": "a.safetensors", "sha256": sha256}
    told = Card(
        data="chairs",
        seed=7,
        scores={"epe": 2.0},
        notes=["first", "second"],
        source=origin,
        progress={"step": 1},
    )
    assert card_from(source, ["second"]) == told
    # Scores were measured in full precision.
    assert card_from(source, ["second"], half=True).scores == {}
    # What people wrote that is no number or text of its kind is left out.
    said = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps({**said, "notes": "odd", "data": 3, "more": 1}))
    mended = card_from(source, [])
    assert (mended.notes, mended.data, mended.seed) == ([], "", 7)
    # The card of another file says nothing of this one; nor does none.
    (tmp_path / "a.json").write_text(json.dumps({**said, "sha256": "0" * 64}))
    assert card_from(source, ["n"]) == Card(notes=["n"], source=origin)
    (tmp_path / "a.json").unlink()
    assert card_from(source, []) == Card(source=origin)
    # A published file is known by its hash.
    name, published = next(iter(PUBLISHED.items()))
    monkeypatch.setattr(module, "sha256_of", lambda path: published.sha256)
    known = card_from(source, [])
    assert (known.data, known.licence) == (published.data, published.licence), name
    assert known.source == {"file": "a.safetensors", "sha256": published.sha256}


def test_half_of_a_number_that_is_too_large():
    state = {"a": torch.tensor([1.0, -70000.0]), "count": torch.tensor([70000])}
    with pytest.raises(WeightsError, match=r"a reaches 70000\. Store them in full"):
        in_half(state)
    halves = in_half({"a": torch.tensor([65504.0]), "count": torch.tensor([70000])})
    assert (halves["a"].dtype, halves["count"].dtype) == (torch.float16, torch.int64)
    many = {str(k): torch.tensor([1e9]) for k in range(10)}
    with pytest.raises(WeightsError) as caught:
        in_half(many)
    assert str(caught.value).count("reaches") == 8

"""The weights that come with the package load by name, are what their cards say, and see motion."""

from __future__ import annotations

import json

import pytest
import torch

import lcv
from lcv.data.synthetic.recipe import QUICK
from lcv.data.synthetic.sequence import generate
from lcv.errors import WeightsError
from lcv.models.build import find, spec_of
from lcv.models.embedded import EMBEDDED, FOLDER, embedded_card, embedded_file
from lcv.models.published import sha256_of


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_card_describes_its_file(name):
    card = embedded_card(name)
    assert card["sha256"] == sha256_of(embedded_file(name))
    assert card["model"]["name"] == EMBEDDED[name]
    assert card["licence"] == "Apache-2.0"
    assert card["data"]
    assert card["recipe"]
    assert card["scores"]


def test_the_twins_differ_in_their_inner_product_alone():
    assert spec_of(lcv.load("raft-small")).inner_product == "elliptical"
    assert spec_of(lcv.load("raft-small-vanilla")).inner_product == "euclidean"
    ours, twin = embedded_card("raft-small"), embedded_card("raft-small-vanilla")
    assert (ours["recipe"], ours["seed"]) == (twin["recipe"], twin["seed"])


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Whatever is fetched is a failure; and no file here is called like a network."""

    def refuse(*words, **more):
        raise AssertionError(f"fetched {words}")

    monkeypatch.setattr("lcv.models.find.fetch", refuse)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.usefixtures("no_network")
def test_an_embedded_name_is_a_name_of_weights_too(name):
    assert find(name) == embedded_file(name)
    alone = lcv.load(name).state_dict()
    for model in {EMBEDDED[name], name}:
        twice = lcv.load(model, weights=name)
        assert spec_of(twice) == spec_of(lcv.load(name))
        assert all(torch.equal(value, alone[key]) for key, value in twice.state_dict().items())


@pytest.mark.usefixtures("no_network")
def test_embedded_weights_of_another_network_are_refused_with_both_names():
    with pytest.raises(WeightsError, match="weights of raft-small, wanted those of raft-large"):
        lcv.load("raft-large", weights="raft-small")


@pytest.mark.usefixtures("no_network")
def test_a_file_of_that_name_comes_first(tmp_path):
    (tmp_path / "raft-small").write_bytes(embedded_file("raft-large").read_bytes())
    assert spec_of(lcv.load("raft-large", weights="raft-small")).name == "raft-large"


def test_no_texture_is_both_trained_on_and_held_out():
    said = json.loads((FOLDER / "textures.json").read_text(encoding="utf-8"))
    assert not set(said["trained_on"]) & set(said["held_out"])
    assert len(said["held_out"]) >= 40


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_weights_see_most_of_the_motion_of_held_out_scenes(name):
    pairs = generate(QUICK, 2**31, range(2), (128, 160))
    with torch.no_grad():
        flow = lcv.load(name)(pairs.image1, pairs.image2, iters=8).flow
    error = (flow - pairs.flow).norm(dim=1).mean()
    assert error < 0.4 * pairs.flow.norm(dim=1).mean()

"""The weights that come with the package load by name, are what their cards say, and see motion."""

from __future__ import annotations

import json

import pytest
import torch

import lcv
from lcv.data.synthetic.recipe import QUICK
from lcv.data.synthetic.sequence import generate
from lcv.models.build import spec_of
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


def test_no_texture_is_both_trained_on_and_held_out():
    said = json.loads((FOLDER / "textures.json").read_text(encoding="utf-8"))
    assert not set(said["trained_on"]) & set(said["held_out"])
    assert len(said["held_out"]) >= 36


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_weights_see_most_of_the_motion_of_held_out_scenes(name):
    pairs = generate(QUICK, 2**31, range(2), (128, 160))
    with torch.no_grad():
        flow = lcv.load(name)(pairs.image1, pairs.image2, iters=8).flow
    error = (flow - pairs.flow).norm(dim=1).mean()
    assert error < 0.4 * pairs.flow.norm(dim=1).mean()

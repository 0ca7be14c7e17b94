"""The weights that come with the package score on real pairs what their cards say, and enough."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lcv
from lcv.evaluate.sources import records_in
from lcv.models.embedded import embedded_card
from testing.shared import shared

KITTI = "KITTI 2015 000010 (occ)"


def epe(model, record) -> float:
    """At 20 iterations, by nothing but its definition."""
    sample = record.read()
    image1, image2 = (
        torch.from_numpy(np.array(image)).movedim(2, 0)[None].float()
        for image in (sample.image1, sample.image2)
    )
    with torch.no_grad():
        flow = model(image1, image2, iters=20).flow[0].movedim(0, 2).numpy()
    return float(np.linalg.norm(flow - sample.flow, axis=2)[sample.valid].mean())


def scored(name):
    (scores,) = embedded_card(name)["scores"].values()
    return scores


def test_raft_small_is_within_its_bounds_and_as_its_card_says():
    model, scores = lcv.load("raft-small").eval(), scored("raft-small")
    found = {r.scene: epe(model, r) for r in records_in([shared("data", "middlebury")])}
    assert len(found) == 4
    for scene, value in found.items():
        assert value == pytest.approx(scores[f"Middlebury {scene}"], abs=2e-3)
    assert np.mean(list(found.values())) <= 0.6
    (kitti,) = records_in([shared("data", "kitti2015")])
    assert epe(model, kitti) == pytest.approx(scores[KITTI], abs=5e-3)
    assert scores[KITTI] <= 4.5


@pytest.mark.parametrize("name", ["raft-small-vanilla", "raft-large"])
def test_the_others_score_what_their_cards_say(name):
    (record,) = records_in([shared("data", "middlebury")], only=["*RubberWhale*"])
    value = epe(lcv.load(name).eval(), record)
    assert value == pytest.approx(scored(name)["Middlebury RubberWhale"], abs=2e-3)

"""The weights that come with the package score on real pairs what their cards say, and enough.

KITTI's pair depends on one car, so it has no bound.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lcv
from lcv.evaluate.sources import records_in
from lcv.models.embedded import embedded_card
from testing.shared import shared

KITTI = "KITTI 2015 000010 (occ)"
MIDDLEBURY = ("Grove2", "RubberWhale", "Urban2", "Venus")


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
    assert set(found) == set(MIDDLEBURY)
    for scene, value in found.items():
        assert value == pytest.approx(scores[f"Middlebury {scene}"], abs=2e-3)
    assert np.mean(list(found.values())) <= 0.45
    (kitti,) = records_in([shared("data", "kitti2015")])
    assert epe(model, kitti) == pytest.approx(scores[KITTI], abs=5e-3)


def test_raft_large_is_within_its_bounds_and_as_its_card_says():
    """Measured on two of its five pairs, for time; the card's file is this one by its hash."""
    model, scores = lcv.load("raft-large").eval(), scored("raft-large")
    (whale,) = records_in([shared("data", "middlebury")], only=["*RubberWhale*"])
    assert epe(model, whale) == pytest.approx(scores["Middlebury RubberWhale"], abs=2e-3)
    (kitti,) = records_in([shared("data", "kitti2015")])
    assert epe(model, kitti) == pytest.approx(scores[KITTI], abs=5e-3)
    middlebury = [scores[f"Middlebury {scene}"] for scene in MIDDLEBURY]
    assert np.mean(middlebury) <= 0.32
    assert scores["Middlebury, mean of the four"] == pytest.approx(np.mean(middlebury), abs=1e-4)


def test_the_twin_scores_what_its_card_says():
    (record,) = records_in([shared("data", "middlebury")], only=["*RubberWhale*"])
    value = epe(lcv.load("raft-small-vanilla").eval(), record)
    assert value == pytest.approx(scored("raft-small-vanilla")["Middlebury RubberWhale"], abs=2e-3)

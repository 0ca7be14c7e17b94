"""Measuring a checkpoint: how the network is called, and numbers made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.models.types import FlowOutput
from lcv.studies.ablation_measure import measure, sums_by_pair
from lcv.train.config import DataConfig, TrainConfig
from lcv.train.kept import Kept
from testing.networks import Stub

CPU = torch.device("cpu")


class Told(Stub):
    """Its flow is (3, 4) everywhere; remembers what it was called with."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        Told.options, Told.kinds = [], []  # of the class: what is called may be a copy

    def forward(self, image1, image2, **options):
        Told.options.append(options)
        Told.kinds.append((image1.dtype, image2.dtype, self.training))
        flow = torch.tensor([3.0, 4.0], dtype=image1.dtype).view(1, 2, 1, 1)
        return FlowOutput(flow.expand(len(image1), 2, *image1.shape[-2:]) + 0 * self.weight)


def pair(count=2, known=True):
    images = torch.zeros(2, count, 3, 8, 8)
    valid = torch.full((count, 1, 8, 8), known)
    truth = torch.zeros(count, 2, 8, 8)
    truth[-1, 0] = 3.0  # the last of a batch errs by 4 px, the others by 5
    return images[0], images[1], truth, valid


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_pair_of_a_batch_is_summed_alone_in_the_networks_own_numbers(dtype):
    model = Told().to(dtype).train()
    sums = sums_by_pair(model, [pair(2), pair(1)], iters=3)
    assert model.kinds == [(dtype, dtype, False)] * 2
    assert model.options == [{"iters": 3}] * 2
    assert model.training
    assert sums.shape[0] == 3
    errors = sums[:, 1] / sums[:, 0]  # pixels, then the sum of errors
    assert errors.tolist() == pytest.approx([5.0, 4.0, 4.0])


@pytest.fixture
def listed(tmp_path):
    """Two pairs of a list, of which nothing is trained on."""
    for name in ("a", "b", "c"):
        write_image(tmp_path / f"{name}.png", np.zeros((16, 16, 3), np.uint8))
    flow = np.zeros((16, 16, 2), np.float32)
    for number in (0, 1):
        flow[..., 0] = 3.0 * number
        write_flow(tmp_path / f"{number}.flo", flow)
    (tmp_path / "pairs.txt").write_text("a.png b.png 0.flo\nb.png c.png 1.flo\n")
    return str(tmp_path / "pairs.txt")


def test_a_test_has_metrics_over_all_and_errors_of_each_pair(listed):
    config = TrainConfig(data=DataConfig(source="procedural"), validate_iters=None)
    model = Told()
    found = measure(model, config, {"own": listed}, 0, CPU)
    assert model.options == [{}] * 2  # of a network that does not iterate
    assert list(found) == ["own"]
    test = found["own"]
    assert test["metrics"]["epe"] == pytest.approx(4.5)
    assert test["metrics"]["fl"] == 100.0
    assert list(test["pairs"]) == ["names", "scenes", "epe", "fl"]
    assert test["pairs"]["epe"] == pytest.approx([5.0, 4.0])
    assert test["pairs"]["fl"] == [100.0, 100.0]
    assert len(set(test["pairs"]["names"])) == 2


def test_iterations_are_those_of_validation_and_pairs_are_read_once(listed):
    config = replace(TrainConfig(), validate_iters=2)
    model, kept = Told(), Kept()
    first = measure(model, config, {"held-out": listed}, 0, CPU, kept)
    assert model.options == [{"iters": 2}] * 2
    assert math.isclose(first["held-out"]["metrics"]["epe"], 4.5)
    (kept_name,) = kept._kept
    assert kept_name == "test held-out"
    assert measure(model, config, {"held-out": listed}, 0, CPU, kept) == first


def test_procedural_pairs_are_numbered_and_each_is_a_scene(monkeypatch):
    asked = []

    def made(config, count, device):
        asked.append((count, device))
        yield pair(count)

    monkeypatch.setattr("lcv.studies.ablation_measure.procedural_test_pairs", made)
    found = measure(Told(), TrainConfig(), {"p": "procedural"}, 3, CPU)["p"]
    assert asked == [(3, CPU)]
    assert found["pairs"]["names"] == found["pairs"]["scenes"] == ["0", "1", "2"]
    assert found["pairs"]["epe"] == pytest.approx([5.0, 5.0, 4.0])

"""A step of learning a patch: Adam's own, and a recorded one that is replayed on new inputs."""

from __future__ import annotations

import math

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.studies.patch_step import Climb, Replayed
from testing.streams import pretend_cuda


def test_it_climbs_as_adam_does_at_a_rate_that_falls_to_a_tenth():
    """Adam with β 0.9 and 0.99, by its formula in float64."""
    start, slope = torch.full((3, 4, 4), 100.0), torch.randn(3, 4, 4)
    climb = Climb(start, rate=6.0, steps=5)

    def objective(patch):
        return (slope.to(patch) * patch).sum() - 0.001 * patch.square().sum()

    x, mean, square = start.double(), 0.0, 0.0
    for step in range(5):
        expected = objective(x)
        gradient = slope.double() - 0.002 * x
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient.square()
        rate = 6.0 * (0.1 + 0.9 * (1 + math.cos(math.pi * step / 5)) / 2)
        move = (mean / (1 - 0.9 ** (step + 1))) / (square / (1 - 0.99 ** (step + 1))).sqrt()
        x = x + rate * move
        climb.set_rate(step)
        value = climb(objective)
        assert not value.requires_grad
        # Rounding of float32, of grey levels near 100 and their sum.
        assert float(value) == pytest.approx(float(expected), abs=1e-2)
        torch.testing.assert_close(climb.patch.double(), x, rtol=0, atol=1e-3)
    assert torch.equal(start, torch.full((3, 4, 4), 100.0))  # a copy is changed


def test_grey_levels_stay_in_range_and_no_gradient_moves_nothing():
    for level, end in ((1.0, 0.0), (254.0, 255.0)):
        climb = Climb(torch.full((3, 2, 2), level), rate=50.0, steps=1)
        climb.set_rate(0)
        climb(lambda patch, sign=1 if end else -1: sign * patch.sum())
        assert (climb.patch == end).all()
    climb = Climb(torch.full((3, 2, 2), 7.0), rate=50.0, steps=1)
    climb.set_rate(0)
    climb(lambda patch: 0 * patch.sum())
    assert (climb.patch == 7).all()


@pytest.fixture
def recorder(monkeypatch):
    return pretend_cuda(monkeypatch)


def test_a_function_is_run_once_then_recorded_then_replayed_on_new_inputs(recorder):
    seen = []

    def add(x, truth, y):
        assert truth is None
        seen.append((x, y))
        return x + y

    replayed = Replayed(add)
    first = replayed(torch.tensor([1.0]), None, torch.tensor([2.0]))
    assert first.item() == 3
    assert recorder == [
        *("side waits for main", "side begins", "side ends", "main waits for side"),
        *("record begins", "record ends"),
    ]
    assert len(seen) == 2  # to warm up, and to be recorded
    kept = seen[1]
    recorder.clear()
    again = replayed(torch.tensor([5.0]), None, torch.tensor([6.0]))
    assert recorder == ["replay"]
    assert len(seen) == 2
    assert [x.item() for x in kept] == [5.0, 6.0]  # where the recorded step reads
    assert again.item() == 3  # what the recording holds: nothing was replayed in truth here


@pytest.mark.parametrize(
    "inputs",
    [(torch.zeros(2), None), (None, None), (torch.zeros(1), torch.zeros(1))],
)
def test_inputs_of_another_shape_or_kind_are_refused(recorder, inputs):
    replayed = Replayed(lambda x, y: x.clone())
    replayed(torch.zeros(1), None)
    with pytest.raises(ArgumentError, match="--graph takes batches of one size, and these differ"):
        replayed(*inputs)

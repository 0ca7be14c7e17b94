"""One step by hand: loss, gradient, update and totals of a network of two numbers."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import nn

from lcv.models.types import FlowOutput
from lcv.train import LossConfig, OptimConfig, TrainConfig
from lcv.train.batches import TrainBatch
from lcv.train.distributed import Processes
from lcv.train.optim import Optimisers
from lcv.train.step import NEVER, Step, loss_of
from testing.streams import pretend_cuda

ALONE = Processes(0, 1, torch.device("cpu"))
CONFIG = TrainConfig(
    optim=OptimConfig("sgd", lr=0.5, schedule="constant", weight_decay=0.0, clip=math.inf),
    loss=LossConfig(iters=None),
    precision="float32",
)


class Shift(nn.Module):
    """The same flow everywhere, and how it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = nn.Parameter(torch.zeros(2))
        self.asked = []

    def forward(self, image1, image2, **options):
        half = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu")
        self.asked.append((options, half, torch.is_autocast_cache_enabled()))
        flow = self.flow.view(1, 2, 1, 1).expand(len(image1), 2, *image1.shape[2:])
        return FlowOutput(flow=flow, flows=(2 * flow, flow))


def batch_of(*flows: tuple[float, float], known: int = 12) -> TrainBatch:
    """Pairs of 3×4 pixels, each of one motion; truth is known at the first `known` pixels."""
    images = [torch.rand(len(flows), 3, 3, 4) for _ in range(2)]
    flow = torch.tensor(flows).view(-1, 2, 1, 1).expand(-1, 2, 3, 4)
    valid = (torch.arange(12) < known).view(1, 1, 3, 4).expand(len(flows), 1, 3, 4)
    return TrainBatch(*images, flow, valid, torch.ones(len(flows), 1, 3, 4))


def step_of(**changes) -> Step:
    config = replace(CONFIG, **changes)
    model = Shift()
    return Step(model, Optimisers(model, config.optim, config.steps), config, ALONE)


def test_a_step_by_hand():
    """|flow − truth| summed over x and y has the mean (3 + 4)/2, weighed by 0.8 and 1."""
    step = step_of()
    step(batch_of((3.0, -4.0)), 0)
    assert step.read() == pytest.approx({"loss": 1.8 * 3.5, "epe": 5.0})
    # Of each prediction's mean over two channels the gradient is ∓1/2; the earlier one is doubled.
    assert step.model.flow.tolist() == pytest.approx([0.65, -0.65])
    step(batch_of((0.65, -0.65)), 1)
    step(batch_of((0.65, -0.65)), 2)
    assert step.read()["epe"] < 1
    assert step.read() == {}, "nothing was done since"
    assert (int(step.number), int(step.failed_at)) == (2, NEVER)


def test_parts_are_a_mean_and_only_the_last_is_shared_with_other_processes(monkeypatch):
    whole, parts = step_of(), step_of(accumulate=3)
    entered = []

    def alone(self):
        entered.append(len(self.model.asked))
        return nullcontext()

    monkeypatch.setattr(Step, "alone", alone)
    batch = batch_of((3.0, -4.0), (1.0, 0.0), (-2.0, 5.0))
    for step in (whole, parts):
        step(batch, 0)
    assert entered == [0, 1], "before the first and the second of three"
    assert len(parts.model.asked) == 3
    torch.testing.assert_close(parts.model.flow, whole.model.flow)
    assert parts.read() == pytest.approx(whole.read())


def test_the_error_is_of_the_pixels_whose_truth_is_known():
    step = step_of()
    batch = batch_of((3.0, -4.0), known=1)
    batch = replace(batch, flow=batch.flow + (torch.arange(12) > 0).view(1, 1, 3, 4) * 7)
    step(batch, 0)
    assert step.read()["epe"] == pytest.approx(5.0)
    step(batch_of((3.0, -4.0), known=0), 1)
    assert set(step.read()) == {"loss"}, "there was nothing to judge it by"


def test_after_a_step_that_is_not_finite_nothing_moves_and_nothing_counts():
    step = step_of(ema=0.5)
    step(batch_of((3.0, -4.0)), 0)
    at = step.model.flow.detach().clone(), step.average.model.flow.clone()
    bad = batch_of((3.0, -4.0))
    step(replace(bad, weight=bad.weight * math.nan), 1)
    step(batch_of((3.0, -4.0)), 2)
    assert int(step.failed_at) == 1
    assert torch.equal(step.model.flow, at[0])
    assert torch.equal(step.average.model.flow, at[1])
    assert step.read() == pytest.approx({"loss": 6.3, "epe": 5.0})


def test_the_average_counts_from_the_first_step_that_is_taken():
    """The share of the new weights is 1 − 1/10 at first."""
    step = step_of(ema=0.999, first_step=7)
    step(batch_of((3.0, -4.0)), 7)
    torch.testing.assert_close(step.average.model.flow, 0.9 * step.model.flow.detach())
    assert step_of().average is None


@pytest.mark.parametrize(
    ("precision", "half"), [("bf16", torch.bfloat16), ("float32", False), ("float64", False)]
)
def test_half_precision_and_iterations_are_as_configured(precision, half):
    step = step_of(precision=precision, loss=LossConfig(iters=5))
    step(batch_of((3.0, -4.0)), 0)
    assert step.model.asked == [({"iters": 5}, half, True)]
    step = step_of()
    step(batch_of((3.0, -4.0)), 0)
    assert step.model.asked[0][0] == {}


def test_the_gradient_is_clipped_as_a_whole():
    step = step_of(optim=replace(CONFIG.optim, clip=0.1))
    step(batch_of((3.0, -4.0)), 0)
    assert float(step.model.flow.detach().norm()) == pytest.approx(0.5 * 0.1, rel=1e-4)


def test_the_loss_of_a_network_with_one_prediction_is_the_plain_l1():
    batch = batch_of((3.0, -4.0))
    loss = loss_of(LossConfig(), FlowOutput(torch.zeros(1, 2, 3, 4)), batch, lambda count: count)
    assert float(loss) == 3.5
    short = loss_of(
        LossConfig(max_flow=4.0), FlowOutput(torch.zeros(1, 2, 3, 4)), batch, lambda count: count
    )
    assert float(short) == 0, "truth of 5 px is too long to count"


def test_a_step_is_recorded_after_the_first_and_then_replayed(monkeypatch):
    events, step, taken = pretend_cuda(monkeypatch), step_of(graph=True), []
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)

    def take(batch):
        events.append(f"step {int(step.number)}")
        taken.append(batch)
        assert torch.backends.cudnn.benchmark  # the fastest convolutions are chosen

    monkeypatch.setattr(step, "_step", take)
    first, second = batch_of((3.0, -4.0)), batch_of((1.0, 2.0))
    step(first, 5)
    assert events == [
        *("side waits for main", "side begins", "step 5", "side ends", "main waits for side"),
        *("record on side begins", "step 5", "record on side ends"),
    ]
    assert not torch.backends.cudnn.benchmark
    (own, recorded) = taken
    assert own is recorded
    assert own.flow.data_ptr() != first.flow.data_ptr()
    assert torch.equal(own.flow, first.flow)
    events.clear()
    step(second, 6)
    assert events == ["replay"]
    assert int(step.number) == 6
    assert torch.equal(own.flow, second.flow)
    assert torch.equal(own.image2, second.image2)

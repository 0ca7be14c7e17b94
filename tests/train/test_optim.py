"""Rates as the authors' schedules have them, and updates that can be skipped."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lcv.errors import ArgumentError
from lcv.inner_product import Elliptical, Riemannian
from lcv.inner_product.riemannian import project, retract
from lcv.train import OptimConfig, TrainConfig
from lcv.train.optim import Optimisers, rate_at


@pytest.mark.parametrize(
    ("steps", "tail", "warmup"), [(2000, 100, 0.05), (800, 0, 0.1), (30, 100, 0.05)]
)
def test_one_cycle_is_torchs_over_the_steps_and_the_tail(steps, tail, warmup):
    config = OptimConfig(lr=4e-4, tail=tail, warmup=warmup)
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        config.lr,
        steps + tail,
        pct_start=warmup,
        cycle_momentum=False,
        anneal_strategy="linear",
    )
    for step in range(steps):
        # Both are a few operations in float64 on numbers up to the peak.
        assert rate_at(config, step, steps) == pytest.approx(
            optimiser.param_groups[0]["lr"], abs=1e-14 * config.lr
        )
        optimiser.step()
        schedule.step()


def test_rafts_peak_and_end():
    """models.md's numbers: the peak at step 5004 of 100,100, and 1.6e-9 at the end of all."""
    config = OptimConfig(lr=4e-4, tail=100)
    rates = [rate_at(config, step, 100_000) for step in (5003, 5004, 5005)]
    assert rates[1] == config.lr > max(rates[0], rates[2])
    assert rate_at(config, 100_099, 100_000) == pytest.approx(1.6e-9)


@pytest.mark.parametrize(
    ("steps", "warmup", "rates"),
    [
        (1, 0.0, [1]),
        (1, 1.0, [1]),
        (2, 0.0, [1, 4e-6]),
        (3, 0.0, [1, 0.5 + 2e-6, 4e-6]),
        (3, 1.0, [0.04, 0.52, 1]),
        (4, 0.5, [0.04, 1, 0.5 + 2e-6, 4e-6]),
    ],
)
def test_the_rates_of_few_steps_by_hand(steps, warmup, rates):
    config = OptimConfig(lr=1.0, warmup=warmup)
    assert [rate_at(config, step, steps) for step in range(steps)] == pytest.approx(rates)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_run_of_few_steps_has_rates_too(steps):
    for warmup in (0.0, 0.05, 1.0):
        config = OptimConfig(lr=1.0, warmup=warmup)
        rates = [rate_at(config, step, steps) for step in range(steps)]
        assert all(0 < rate <= 1 for rate in rates)


def test_steps_halve_and_a_restart_begins_anew():
    config = OptimConfig(lr=8.0, schedule="steps", drops=(3, 5, 9), restarts=(7,))
    rates = [rate_at(config, step, 12) for step in range(12)]
    assert rates == [8, 8, 8, 4, 4, 2, 2, 8, 8, 4, 4, 4]


def test_linear_falls_on_a_line_and_rises_to_it_wherever_it_begins():
    config = OptimConfig(lr=4.0, lr_end=1.0, schedule="linear", warmup=0.1)
    for first in (0, 50):
        rates = [rate_at(config, step, 100, first) for step in range(first, 100)]
        line = [4 - 0.03 * step for step in range(first, 100)]
        assert rates[0] == pytest.approx(line[0] / 25)
        assert rates[10:] == pytest.approx(line[10:])
        rise = [rate / there for rate, there in zip(rates[:11], line, strict=False)]
        assert rise == pytest.approx([0.04 + 0.096 * k for k in range(11)])


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner_product = Elliptical(3)
        self.rest = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))


def test_sgd_is_plain():
    """p ← p − lr (g + decay p), with W's own rate and decay; nothing where it is skipped."""
    model = Small()
    config = OptimConfig(
        optimiser="sgd",
        lr=0.1,
        schedule="constant",
        weight_decay=0.5,
        w_lr_factor=2.0,
        w_weight_decay=0.25,
    )
    optimisers = Optimisers(model, config, 10)
    t = model.inner_product.t
    with torch.no_grad():
        t.copy_(torch.tensor([0.5, 0.0, -0.5]))
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimisers.set_rates(0)
    before = [p.detach().clone() for p in (model.rest, t)]
    optimisers.update(torch.ones(()))
    assert torch.equal(model.rest, before[0])
    assert torch.equal(t, before[1])
    optimisers.update(torch.zeros(()))
    torch.testing.assert_close(model.rest.data, before[0] - 0.1 * (1 + 0.5 * before[0]))
    torch.testing.assert_close(t.data, before[1] - 0.2 * (1 + 0.25 * before[1]))


class Turning(Small):
    """The same with a rotation that is learned as one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner_product = Riemannian(3)


def test_a_rotation_has_w_s_rate_and_stays_where_an_update_is_skipped():
    model = Turning()
    config = OptimConfig(lr=0.1, schedule="constant", w_lr_factor=0.5, w_from_step=3, eps=1e-6)
    optimisers = Optimisers(model, config, 10)
    adamw, manifold = optimisers.all
    assert [group["weight_decay"] for group in adamw.param_groups] == [1e-4, 0.0]
    assert {(group["betas"], group["eps"]) for group in adamw.param_groups} == {
        ((0.9, 0.999), 1e-6)
    }
    assert [group["momentum"] for group in manifold.param_groups] == [0.9]
    P = model.inner_product.P
    upper = torch.zeros(3, 3)
    upper[0, 1] = 1.0
    for p in optimisers.parameters:
        p.grad = torch.ones_like(p)
    P.grad = upper
    for step, rate in ((2, 0.0), (3, 0.05)):
        optimisers.set_rates(step)
        assert [float(value) for value in optimisers.rates.values()] == pytest.approx([0.1, rate])
        assert [group["lr"] for group in manifold.param_groups] == pytest.approx([rate])
    before = P.detach().clone()
    optimisers.update(torch.ones(()))
    assert torch.equal(P, before)
    optimisers.update(torch.zeros(()))
    # The momentum of the skipped update is carried along.
    wanted = retract(before, -0.05 * 1.9 * project(before, upper))
    torch.testing.assert_close(P.detach(), wanted)
    optimisers.zero_grad()
    assert all(p.grad is not None and not p.grad.any() for p in optimisers.parameters)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("kind", [Elliptical, None])
def test_what_is_loaded_goes_on_at_the_rates_that_are_set(kind, alone):
    config = OptimConfig(lr=0.1, schedule="constant", w_lr_factor=2.0, w_alone=alone)

    def made():
        model = Small()
        if kind is None:
            model.inner_product = None
        return Optimisers(model, config, 10)

    if kind is None and alone:
        with pytest.raises(ArgumentError, match="w_alone: the model's inner product has no param"):
            made()
        return
    first, second = made(), made()
    first.set_rates(0)
    second.load(first.state())
    second.set_rates(0)
    wanted = [0.1, 0.2][alone : 1 if kind is None else 2]
    assert [float(group["lr"]) for group in second.all[0].param_groups] == pytest.approx(wanted)
    names = [["rest"], ["w"], ["rest", "w"]][1 if alone else 0 if kind is None else 2]
    for group, name in zip(second.all[0].param_groups, names, strict=True):
        assert group["lr"] is second.rates[name]


def test_an_unknown_optimiser_names_the_known_ones():
    with pytest.raises(
        ArgumentError, match=r"optim\.optimiser is 'adam', wanted one of adamw, sgd"
    ):
        TrainConfig(optim=OptimConfig(optimiser="adam"))

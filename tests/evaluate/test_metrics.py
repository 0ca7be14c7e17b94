"""Metrics by hand, and sums that add up however the pixels are split."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.evaluate.metrics import flow_sums, metrics_of


def test_by_hand():
    truth = torch.zeros(1, 2, 1, 5)
    truth[0, 0, 0] = torch.tensor([100.0, 10.0, 0.0, 2.0, 7.0])
    flow = truth.clone()
    flow[0, 0, 0, 0] += 4.0  # above 3 px, but below 5 % of 100: no outlier
    flow[0, 0, 0, 1] += 4.0  # an outlier
    flow[0, 1, 0, 2] += 3.5  # true length 0: an outlier
    flow[0, 0, 0, 3] += 0.5
    flow[0, 0, 0, 4] = torch.nan  # not known, so it does not count
    valid = torch.tensor([True, True, True, True, False]).view(1, 1, 1, 5)
    metrics = metrics_of(flow_sums(flow, truth, valid))
    assert metrics["epe"] == pytest.approx((4 + 4 + 3.5 + 0.5) / 4)
    assert metrics["epe_image"] == metrics["epe"]
    assert metrics["px1"] == 25
    assert metrics["px3"] == 25
    assert metrics["px5"] == 100
    assert metrics["fl"] == 50


def test_thresholds_are_strict():
    truth = torch.zeros(1, 2, 1, 2)
    truth[0, 0] = 60.0
    flow = truth + torch.tensor([3.0, 0.0]).view(1, 2, 1, 1)
    metrics = metrics_of(flow_sums(flow, truth, torch.ones(1, 1, 1, 2, dtype=torch.bool)))
    assert metrics["fl"] == 0, "an error of exactly 3 px, 5 % of the length, is no outlier"
    assert metrics["px3"] == 0
    assert metrics["px5"] == 100


def test_images_weigh_by_pixels_in_one_mean_and_alike_in_the_other():
    truth = torch.zeros(2, 2, 2, 2)
    flow = truth.clone()
    flow[0, 0] = 1.0
    flow[1, 0] = 4.0
    valid = torch.ones(2, 1, 2, 2, dtype=torch.bool)
    valid[1, 0, 0] = False
    metrics = metrics_of(flow_sums(flow, truth, valid))
    assert metrics["epe"] == pytest.approx((4 * 1 + 2 * 4) / 6)
    assert metrics["epe_image"] == pytest.approx((1 + 4) / 2)


def test_nothing_known_is_nothing_said():
    flow = torch.zeros(1, 2, 3, 4)
    assert metrics_of(flow_sums(flow, flow, torch.zeros(1, 1, 3, 4, dtype=torch.bool))) == {}


def slow(flow, truth, valid):
    """The definitions, a pixel at a time."""
    errors, outliers = [], 0
    for b in range(len(flow)):
        for y in range(flow.shape[2]):
            for x in range(flow.shape[3]):
                if not valid[b, 0, y, x]:
                    continue
                du, dv = (flow[b, :, y, x] - truth[b, :, y, x]).tolist()
                u, v = truth[b, :, y, x].tolist()
                error, length = (du * du + dv * dv) ** 0.5, (u * u + v * v) ** 0.5
                errors.append(error)
                outliers += error > 3 and error > 0.05 * length
    n = len(errors)
    named = {"epe": sum(errors) / n, "fl": 100 * outliers / n}
    return named | {f"px{k}": 100 * sum(e < k for e in errors) / n for k in (1, 3, 5)}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 5.0, 50.0]))
def test_against_the_definitions_and_in_any_split(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    truth = scale * torch.randn(3, 2, 4, 5, generator=generator, dtype=torch.float64)
    flow = truth + 3 * torch.randn(3, 2, 4, 5, generator=generator, dtype=torch.float64)
    valid = torch.rand(3, 1, 4, 5, generator=generator) < 0.7
    together = metrics_of(flow_sums(flow, truth, valid))
    for name, value in slow(flow, truth, valid).items():
        assert together[name] == pytest.approx(value)
    parts = sum(flow_sums(flow[i : i + 1], truth[i : i + 1], valid[i : i + 1]) for i in range(3))
    assert metrics_of(parts) == pytest.approx(together)

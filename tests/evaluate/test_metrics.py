"""Metrics by hand, against an independent slow version, and as sums that add up in any split."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import ShapeError
from lcv.evaluate.metrics import (
    METRICS,
    explain,
    flow_sums,
    metrics_from,
    metrics_of,
    pair_sums,
)
from lcv.evaluate.reference import slow_metrics


def row(*pairs: tuple[float, float]) -> torch.Tensor:
    """(u, v) of each pixel of one row → (2, 1, w)"""
    return torch.tensor(pairs).T[:, None]


def mask(*values: int) -> torch.Tensor:
    return torch.tensor([values]).bool()


def test_by_hand():
    truth = row((100.0, 0.0), (10.0, 0.0), (0.0, 0.0), (2.0, 0.0), (7.0, 0.0))
    flow = truth.clone()
    flow[0, 0, 0] += 4.0  # above 3 px, but below 5 % of 100: no outlier
    flow[0, 0, 1] += 4.0  # an outlier
    flow[1, 0, 2] += 3.5  # true length 0: an outlier
    flow[0, 0, 3] += 0.5
    flow[0, 0, 4] = torch.nan  # not known, so it does not count
    valid = mask(1, 1, 1, 1, 0)
    metrics = metrics_of(flow_sums(flow[None], truth[None], valid[None, None]))
    assert metrics["epe"] == pytest.approx((4 + 4 + 3.5 + 0.5) / 4)
    assert metrics["epe_image"] == metrics["epe"]
    assert metrics["px1"] == 25
    assert metrics["px3"] == 25
    assert metrics["px5"] == 100
    assert metrics["fl"] == 50
    full = metrics_from([pair_sums(flow, truth, valid)])
    assert {name: full[name] for name in metrics} == pytest.approx(metrics)
    assert full["wauc"] == pytest.approx(100 * (0.2**2 + 0.2**2 + 0.3**2 + 0.9**2) / 4)


def test_regions_by_hand():
    truth = row((0.0, 9.0), (6.0, 8.0), (0.0, 39.0), (40.0, 0.0), (300.0, 400.0), (3.0, 4.0))
    error = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    flow = truth + row(*((e, 0.0) for e in error))
    valid = mask(1, 1, 1, 1, 1, 0)
    occluded = mask(1, 0, 0, 1, 0, 1)
    objects = torch.tensor([[0, 7, 0, 2, 2, 9]], dtype=torch.uint8)
    named = metrics_from([pair_sums(flow, truth, valid, occluded, objects)])
    assert named["epe_s0_10"] == 1
    assert named["epe_s10_40"] == (2 + 4) / 2  # a length of exactly 10 belongs to the upper bin
    assert named["epe_s40"] == (8 + 16) / 2  # and so does one of exactly 40
    assert named["epe_occ"] == named["epe_unmatched"] == (1 + 8) / 2
    assert named["epe_noc"] == named["epe_matched"] == pytest.approx((2 + 4 + 16) / 3)
    # Outliers: 4 of 39 and 8 of 40; 16 px are under 5 % of 500.
    assert named["fl"] == 40
    assert named["fl_bg"] == 50
    assert named["fl_fg"] == pytest.approx(100 / 3)
    assert named["fl_occ"] == 50
    assert named["fl_noc"] == pytest.approx(100 / 3)


def test_thresholds_are_strict():
    truth = row((60.0, 0.0), (60.0, 0.0))
    flow = truth + row((3.0, 0.0), (3.0, 0.0))
    metrics = metrics_from([pair_sums(flow, truth, mask(1, 1))])
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
    pairs = [pair_sums(flow[i], truth[i], valid[i, 0]) for i in range(2)]
    for metrics in (metrics_of(flow_sums(flow, truth, valid)), metrics_from(pairs)):
        assert metrics["epe"] == pytest.approx((4 * 1 + 2 * 4) / 6)
        assert metrics["epe_image"] == pytest.approx((1 + 4) / 2)
    assert metrics_from(pairs)["fl"] == pytest.approx(100 * 2 / 6)
    assert metrics_from(pairs)["fl_image"] == 50


def test_an_image_without_a_known_pixel_counts_for_nothing():
    truth = torch.zeros(2, 2, 3, 4)
    valid = torch.ones(2, 1, 3, 4, dtype=torch.bool)
    valid[1] = False
    metrics = metrics_of(flow_sums(truth + 3, truth, valid))
    assert metrics["epe"] == metrics["epe_image"] == pytest.approx(18**0.5)


def test_nothing_known_is_nothing_said():
    flow = torch.zeros(1, 2, 3, 4)
    nothing = torch.zeros(1, 1, 3, 4, dtype=torch.bool)
    assert metrics_of(flow_sums(flow, flow, nothing)) == {}
    assert metrics_from([pair_sums(flow[0], flow[0], nothing[0, 0])]) == {}
    assert metrics_from([]) == {}


def test_a_region_without_a_map_or_a_pixel_is_left_out():
    flow = torch.ones(2, 3, 4)
    valid = torch.ones(3, 4, dtype=torch.bool)
    named = metrics_from([pair_sums(flow, flow, valid)])
    assert {"fl_bg", "epe_noc", "epe_matched", "epe_s40"}.isdisjoint(named)
    named = metrics_from([pair_sums(flow, flow, valid, ~valid, torch.zeros(3, 4))])
    assert {"fl_bg", "epe_noc"} <= named.keys()
    assert {"fl_fg", "epe_occ"}.isdisjoint(named)


def test_shapes_are_refused_by_name():
    with pytest.raises(ShapeError, match="pair_sums"):
        pair_sums(torch.zeros(2, 3, 4), torch.zeros(2, 4, 3), torch.ones(3, 4).bool())


def test_every_metric_says_what_it_is():
    lines = explain().splitlines()
    assert len(lines) == len(METRICS)
    for line, (name, metric) in zip(lines, METRICS.items(), strict=True):
        assert line.startswith(name)
        assert metric.unit in ("px", "%")
        assert metric.definition in line


def random_pair(generator, scale, maps):
    """A pair as arrays, with errors on both sides of every threshold and NaN where not known."""
    h, w = generator.integers(1, 6, 2)
    truth = generator.normal(0, scale, (h, w, 2)).astype(np.float32)
    spread = generator.choice((0.3, 3.0, 12.0), (h, w, 1))
    flow = truth + (spread * generator.normal(size=(h, w, 2))).astype(np.float32)
    valid = generator.random((h, w)) < 0.7
    truth[~valid] = 0
    flow[~valid] = np.nan
    occluded = generator.random((h, w)) < 0.4 if maps else None
    objects = generator.integers(0, 3, (h, w)).astype(np.uint8) if maps else None
    return flow, truth, valid, occluded, objects


def sums_of(pair):
    flow, truth, *maps = pair
    turned = (torch.from_numpy(x).permute(2, 0, 1) for x in (flow, truth))
    return pair_sums(*turned, *(None if m is None else torch.from_numpy(m) for m in maps))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 5.0, 50.0]),
    st.lists(st.booleans(), min_size=1, max_size=4),
)
def test_against_the_slow_version(seed, scale, maps):
    generator = np.random.default_rng(seed)
    pairs = [random_pair(generator, scale, each) for each in maps]
    steps = 400
    slow = slow_metrics(pairs, steps)
    fast = metrics_from(map(sums_of, pairs))
    assert fast.keys() == slow.keys()
    for name, value in fast.items():
        # The slow one adds up thresholds, and says by how much that can be off.
        budget = 200 / steps if name == "wauc" else 1e-9 * (1 + abs(value))
        assert abs(value - slow[name]) <= budget, name


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.randoms(use_true_random=False))
def test_neither_order_nor_split_changes_a_bit(seed, count, shuffler):
    generator = np.random.default_rng(seed)
    sums = [sums_of(random_pair(generator, 20.0, bool(i % 2))) for i in range(count)]
    together = metrics_from(sums)
    shuffler.shuffle(sums)
    assert metrics_from(sums) == together


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 5.0, 50.0]))
def test_sums_of_batches_agree_with_sums_of_pairs(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    truth = scale * torch.randn(3, 2, 4, 5, generator=generator, dtype=torch.float64)
    flow = truth + 3 * torch.randn(3, 2, 4, 5, generator=generator, dtype=torch.float64)
    valid = torch.rand(3, 1, 4, 5, generator=generator) < 0.7
    together = metrics_of(flow_sums(flow, truth, valid))
    parts = sum(flow_sums(flow[i : i + 1], truth[i : i + 1], valid[i : i + 1]) for i in range(3))
    assert metrics_of(parts) == pytest.approx(together)
    pairs = metrics_from(pair_sums(flow[i], truth[i], valid[i, 0]) for i in range(3))
    assert {name: pairs[name] for name in together} == pytest.approx(together)


def test_wauc_is_the_integral_of_its_definition():
    """Of a single pixel: the weight of the thresholds that it passes, over all the weight."""
    generator = random.Random(0)
    for _ in range(20):
        error = generator.uniform(0, 6)
        x = (np.arange(200_000) + 0.5) / 200_000 * 5
        weight = 1 - x / 5
        wanted = 100 * weight[x >= error].sum() / weight.sum()
        flow = row((error, 0.0)).double()
        flow[0] = error
        found = metrics_from([pair_sums(flow, torch.zeros_like(flow), mask(1))])["wauc"]
        assert found == pytest.approx(wanted, abs=200 / 200_000)

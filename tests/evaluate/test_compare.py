"""Intervals and tests by their laws; results that were not measured alike are not compared."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from lcv.errors import ArgumentError, FileError
from lcv.evaluate import compare as module
from lcv.evaluate.compare import (
    bootstrap_interval,
    compare,
    first_difference,
    sign_test,
    write_comparison,
)
from lcv.evaluate.metrics import metrics_from
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import DatasetResult, PairResult, Result

NUMBERS = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-2.0, -0.1, 0.0, 0.0, 0.3, 5.0]), min_size=1, max_size=60))
def test_the_sign_test_is_the_exact_binomial_test(differences):
    above, below = (sum(d * sign > 0 for d in differences) for sign in (1, -1))
    n = above + below
    wanted = binomtest(above, n).pvalue if n else 1.0
    assert sign_test(differences) == pytest.approx(wanted)
    assert sign_test([-d for d in differences]) == sign_test(differences)


def test_the_sign_test_by_hand_and_of_many():
    assert sign_test([1, 1, 1, 1, 1]) == 2 / 2**5
    assert sign_test([0.0, 0.0]) == 1
    assert 0 < sign_test([1.0] * 1041) < 1e-300


@settings(max_examples=30, deadline=None)
@given(NUMBERS, st.floats(-100, 100), st.floats(0.01, 100))
def test_an_interval_moves_and_scales_with_its_numbers(numbers, shift, scale):
    low, high = bootstrap_interval(numbers, draws=200)
    assert min(numbers) - 1e-9 <= low <= high <= max(numbers) + 1e-9
    assert (low, high) == bootstrap_interval(numbers, draws=200)
    moved = bootstrap_interval([scale * x + shift for x in numbers], draws=200)
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), abs=1e-6)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """300 trials of 60 draws of mean 0.3: 95 % would be 285; chance allows 285 ± 5 · 3.8."""
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(300):
        low, high = bootstrap_interval(generator.exponential(0.3, 60), draws=400, seed=trial)
        hits += low <= 0.3 <= high
    # A percentile interval of a skewed sample of 60 is a little short, about 93 %.
    assert 300 * 0.93 - 5 * 4.4 <= hits <= 300


def test_scenes_are_drawn_whole():
    """Ten frames of each of eight scenes that differ: as uncertain as eight numbers, not eighty."""
    scene_means = np.array([0.0, 1, 2, 3, 4, 5, 6, 7])
    values = np.repeat(scene_means, 10)
    scenes = np.repeat(np.arange(8), 10).tolist()
    grouped = bootstrap_interval(values, groups=scenes)
    assert grouped == pytest.approx(bootstrap_interval(scene_means), abs=1e-12)
    low, high = bootstrap_interval(values)
    assert high - low < (grouped[1] - grouped[0]) / 2
    assert bootstrap_interval(values, groups=list(range(80))) == (low, high)


def test_one_witness_says_nothing_about_the_spread():
    assert bootstrap_interval([0.5]) == (-math.inf, math.inf)
    assert bootstrap_interval([0.5, 0.6], groups=["a", "a"]) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_interval([]), "wanted a list of one or more"),
        (lambda: bootstrap_interval([1.0, 2.0], draws=0), "draws is 0, wanted at least 1"),
        (lambda: bootstrap_interval([math.nan, 1.0]), "a difference is not a number"),
        (lambda: bootstrap_interval([1.0, 2.0], groups=["a"]), "1 groups for 2 differences"),
        (lambda: sign_test([[1.0]]), r"shape \(1, 1\)"),
    ],
)
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def result(epes, label="A", dataset="made", pixels=10, protocol=PROTOCOLS["raft"], truth=""):
    """A result with one EPE a pair."""
    pairs = tuple(
        PairResult(
            name,
            name[0],
            {"pixels/all": pixels, "error/all": pixels * epe, "outlier/all": 0},
            truth,
        )
        for name, epe in epes.items()
    )
    sums = [
        pair.sums | dict.fromkeys(("px1/all", "px3/all", "px5/all", "wauc/all"), 0)
        for pair in pairs
    ]
    pairs = tuple(replace(p, sums=s) for p, s in zip(pairs, sums, strict=True))
    metrics = metrics_from(sums)
    each = DatasetResult(metrics, pairs, {"iters": 20, "pad": "sintel"}, {"name": "fake"})
    return Result({dataset: each}, protocol, {}, label)


def test_differences_are_taken_pair_by_pair():
    a = result({"a1": 1.0, "a2": 2.0, "b1": 4.0})
    b = result({"b1": 3.0, "a1": 1.5, "a2": 2.0}, "B")  # the order does not matter
    (row,) = compare(a, b, ["epe"])
    assert (row.dataset, row.metric, row.unit, row.pairs) == ("made", "epe", "px", 3)
    assert row.first == pytest.approx(7 / 3)
    assert row.second == pytest.approx(6.5 / 3)
    assert row.mean == pytest.approx(-0.5 / 3)
    assert (row.smaller, row.equal, row.larger) == (1, 1, 1)
    assert row.sign_p == 1
    assert row.low <= row.mean <= row.high
    same = compare(a, a)
    assert all(r.mean == r.low == r.high == 0 for r in same)
    one = compare(result({"a1": 1.0}), result({"a1": 2.0}), ["epe"])[0]
    assert one.as_dict()["low"] is None


def test_results_that_were_not_measured_alike_are_refused():
    a = result({"a1": 1.0, "a2": 2.0})
    other = PROTOCOLS["raft"].changed(iters=12)
    cases = [
        (
            result({"a1": 1.0, "a2": 2.0}, "B", protocol=other),
            r"settings.chairs.iters \(24 and 12\)",
        ),
        (result({"a1": 1.0, "a2": 2.0}, "B", "else"), "the second has no made"),
        (result({"a1": 1.0}, "B"), "in made, the pair a2 is not in the second"),
        (result({"a1": 1.0, "a2": 2.0, "a3": 1.0}, "B"), "the pair a3 is not in the first"),
        (
            result({"a1": 1.0, "a2": 2.0}, "B", pixels=9),
            r"the pair a1 has another truth: pixels/all \(10 and 9\)",
        ),
    ]
    for b, message in cases:
        with pytest.raises(ArgumentError, match=message):
            compare(a, b)
    one, two = (result({"a1": 1.0}, name, truth=name) for name in "AB")
    with pytest.raises(ArgumentError, match="pair a1 has another truth: as many known pixels"):
        compare(one, two)
    assert compare(one, replace(two, datasets=one.datasets))
    assert compare(result({"a1": 1.0}), two), "results of older versions have no hash"
    with pytest.raises(ArgumentError, match="no metric 'aepe'; there are epe"):
        compare(a, a, ["aepe"])


def test_the_interval_is_the_middle_95_percent_of_the_drawn_means(monkeypatch):
    """Of 10,000 draws with the seed 0 where nothing is said; drawn in pieces, the same."""
    values = np.random.default_rng(1).normal(size=7)
    drawn = np.random.default_rng(0).integers(0, 7, (10_000, 7))
    wanted = np.quantile(values[drawn].mean(1), (0.025, 0.975))
    assert bootstrap_interval(values) == pytest.approx(tuple(wanted), abs=1e-12)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values)
    whole = bootstrap_interval(values, draws=10)
    monkeypatch.setattr(module, "_CHUNK", 7 * 4)
    assert bootstrap_interval(values, draws=10) == pytest.approx(whole, abs=1e-12)
    monkeypatch.setattr(module, "_CHUNK", 1)
    assert bootstrap_interval(values, draws=10) == pytest.approx(whole, abs=1e-12)
    assert len({*bootstrap_interval(values, draws=1)}) == 1


def test_groups_of_other_sizes_weigh_by_their_frames():
    """Two scenes of 1 and 3 frames: the drawn means are 0, 1 and (0 + 3) / 4."""
    low, high = bootstrap_interval([0.0, 1.0, 1.0, 1.0], groups=["a", "b", "b", "b"], draws=400)
    assert (low, high) == (0, 1)
    generator = np.random.default_rng(0).integers(0, 2, (9, 2)).sum(1)
    means = np.array([0, 0.75, 1])[generator]
    found = bootstrap_interval([0.0, 1.0, 1.0, 1.0], groups=["a", "b", "b", "b"], draws=9)
    assert found == pytest.approx(tuple(np.quantile(means, (0.025, 0.975))))


def test_scenes_are_taken_from_the_pairs():
    a, b = result({"a1": 1.0, "a2": 1.0, "b1": 1.0}), result({"a1": 2.0, "a2": 2.0, "b1": 5.0})
    (plain,), (grouped,) = compare(a, b, ["epe"]), compare(a, b, ["epe"], by_scene=True)
    assert (grouped.low, grouped.high) == bootstrap_interval(
        [1.0, 1.0, 4.0], groups=["a", "a", "b"]
    )
    assert (plain.low, plain.high) == bootstrap_interval([1.0, 1.0, 4.0])
    assert (plain.smaller, plain.equal, plain.larger, plain.sign_p) == (0, 0, 3, 0.25)
    assert [row.metric for row in compare(a, b)] == ["epe", "fl", "wauc"]
    assert compare(a, b, ["fl_bg"]) == [], "what no pair has is left out"


def test_a_comparison_as_json(tmp_path):
    a, b = result({"a1": 1.0}), result({"a1": 2.0}, "B–")
    rows = compare(a, b, ["epe"])
    path = tmp_path / "comparison.json"
    write_comparison(path, a, [(b, rows)])
    row = {
        "dataset": "made",
        "metric": "epe",
        "unit": "px",
        "pairs": 1,
        "first": 1.0,
        "second": 2.0,
        "mean": 1.0,
        "low": None,
        "high": None,
        "sign_p": 1.0,
        "smaller": 0,
        "equal": 0,
        "larger": 1,
    }
    content = {
        "format": "lcv comparison 1",
        "first": "A",
        "protocol": a.protocol.as_dict(),
        "others": [{"label": "B–", "differences": [row]}],
    }
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    with pytest.raises(FileError, match="exists already"):
        write_comparison(path, a, [(b, rows)])
    write_comparison(path, a, [], overwrite=True)
    assert json.loads(path.read_text())["others"] == []


def test_the_first_of_several_differences_is_named():
    assert first_difference({"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 3}, "") == "c (2 and 3)"
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 2}}, "") == "a.b (1 and 2)"
    assert first_difference({}, {"a": {"b": 2}}, "x") == "x.a (None and {'b': 2})"
    assert first_difference({"a": 1}, {"a": 1}, "") == first_difference(3, 3, "x") == ""
    nameless = result({"a1": 1.0}, "")
    with pytest.raises(ArgumentError, match="the first and the second cannot be compared: the sec"):
        compare(nameless, result({"a1": 1.0}, "", "else"))
    more = replace(nameless, datasets={**nameless.datasets, "else": nameless.datasets["made"]})
    with pytest.raises(ArgumentError, match="cannot be compared: the first has no else"):
        compare(nameless, more)

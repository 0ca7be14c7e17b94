"""Plans: what a process takes is predicted, and the first strategy that fits is taken."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lcv.errors import ArgumentError, ShapeError
from lcv.memory import parse_bytes
from lcv.predict import memory
from lcv.predict.matching import Wanted
from lcv.predict.memory import MARGIN, Plan

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "planner.py"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="high-water marks are Linux")
@pytest.mark.parametrize(
    ("model", "strategy", "size"),
    [
        ("raft-small", "all-pairs", [480, 640]),
        ("raft-small", "on-demand", [540, 960]),
        ("raft-small", "tiles", [480, 640, 320]),
        ("ddflow", "local", [320, 448]),
        ("vcn-small", "local", [256, 384]),
    ],
)
def test_a_prediction_is_within_20_percent_of_a_process(model, strategy, size):
    """The small version of benchmarks/planner.py, at sizes that the table was not made from."""
    command = [sys.executable, BENCHMARK, "--child", model, strategy, json.dumps(size), "cpu", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    assert found["predicted"] == pytest.approx(found["measured"], rel=0.20)
    assert not found["compiler"], "a plan must not load torch's compiler"


def test_the_first_strategy_that_fits_is_taken(make):
    """As the limit falls: all-pairs, on demand, tiles, smaller tiles."""
    sides, strategies = [], []
    for limit in ("4GB", "700MB", "330MB", "230MB", "160MB"):
        plan = make("raft-large", max_memory=limit).plan(720, 1280)
        assert plan.bytes * MARGIN <= plan.limit == parse_bytes(limit)
        strategies.append(plan.strategy)
        sides.append(plan.tiling.height if plan.tiling else 0)
    assert strategies == ["all-pairs", "on-demand", "tiles", "tiles", "tiles"]
    assert sides[2] >= sides[3] > sides[4]
    assert make("raft-large").plan(64, 64).strategy == "all-pairs"


def test_too_little_for_anything_says_the_least_that_would_do(make):
    with pytest.raises(ArgumentError) as caught:
        make(max_memory="20MB").plan(480, 640)
    message = str(caught.value)
    assert "max_memory is 20 MB, but raft-small needs at least" in message
    assert "for frames of 640×480 pixels (as tiles of 256 pixels)" in message
    least = parse_bytes(re.search(r"at least ([\d.]+ [MG]B)", message)[1])
    assert make(max_memory=int(least * 1.01)).plan(480, 640).strategy == "tiles"
    with pytest.raises(ArgumentError):
        make(max_memory=int(least * 0.98)).plan(480, 640)


def test_what_is_free_counts_where_no_limit_is_set(make, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: parse_bytes("200MB"))
    assert make("raft-large").plan(436, 1024).strategy == "tiles"
    # Who asks for a strategy gets it; memory that is free cannot be known exactly.
    assert make("raft-large", strategy="all-pairs").plan(436, 1024).strategy == "all-pairs"
    with pytest.raises(
        ArgumentError, match=r"(?s)max_memory is 300 MB.*all-pairs, which was asked"
    ):
        make("raft-large", strategy="all-pairs", max_memory="300MB").plan(436, 1024)
    monkeypatch.setattr(memory, "free_bytes", lambda device: parse_bytes("10MB"))
    with pytest.raises(ArgumentError, match="only 10 MB of memory are free, but raft-large needs"):
        make("raft-large").plan(436, 1024)


@pytest.mark.parametrize("name", ["vcn-small", "ddflow"])
def test_networks_with_one_strategy_are_planned_too(make, name):
    plan = make(name).plan(436, 1024)
    assert plan.strategy == "local"
    assert plan.bytes > make(name).plan(218, 512).bytes > 50e6
    with pytest.raises(ArgumentError, match=rf"{name} needs at least .* \(as local\)"):
        make(name, max_memory="40MB").plan(436, 1024)


def test_the_volume_is_counted_exactly(make):
    """The bytes that the table does not have to know: every level of the pyramid, padded."""
    matcher = make().matcher.with_strategy("all-pairs")
    counted = memory.volume_bytes(matcher, 96, 136)
    assert memory.volume_bytes(dataclasses.replace(matcher, half="fp16"), 96, 136) == counted // 2
    volume = matcher.model.cost_volume
    state = volume.build(torch.zeros(1, 8, 12, 17), torch.zeros(1, 8, 12, 17))
    assert counted == sum(costs.numel() * costs.element_size() for costs in state.costs)


def test_more_that_is_asked_takes_more(make):
    plain = make().plan(436, 1024).bytes
    assert make().plan(436, 1024, backward=True, occlusion=True, warp_error=True).bytes > plain


def test_a_plan_is_made_once_a_size(make, monkeypatch):
    predictor = make()
    plan = predictor.plan(200, 296)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1)
    assert predictor.plan(200, 296) is plan


def test_a_plan_in_words(make):
    whole = make(max_memory="2GB").plan(436, 1024).text
    assert re.fullmatch(r"1024×436: all-pairs, about \d+ MB of 2 GB", whole)
    tiles = make(max_memory="150MB").plan(720, 1280).text
    pattern = (
        r"1280×720: tiles \(\d+ of \d+×\d+\), about [\d.]+ MB of 150 MB; \d\.\d times the pixels"
    )
    assert re.match(pattern, tiles)
    own = "136×96: your network's own way"
    assert (
        Plan("own", 96, 136, None).text == f"{own}; its memory will be measured on the first pair"
    )
    assert Plan("own", 96, 136, 2_000_000).text == f"{own}, about 2 MB"
    with pytest.raises(ShapeError, match="the frame is 40×30 pixels; raft-small needs at least 57"):
        make().plan(30, 40)


def test_a_plan_that_was_kept_is_the_plan_of_its_size(make):
    ours = make()
    kept = Plan("on-demand", 64, 72, 1)
    ours.planner.keep(kept)
    for width in range(100, 200):
        ours.plan(64, width)
    assert ours.plan(64, 72) is ours.plan(64, 72, backward=True) is kept


@pytest.mark.parametrize("limit", ["4GB", "160MB"])
def test_a_plan_survives_being_written_down(make, limit):
    plan = make(max_memory=limit).plan(720, 1280)
    again = Plan.from_json(json.loads(json.dumps(plan.as_json)), 720, 1280, parse_bytes(limit))
    assert again == plan


def test_what_runs_out_of_memory_has_other_plans_left(make):
    planner = make().planner
    plan = planner.plan(720, 1280, Wanted())
    rest = [each.strategy for each in planner.instead_of(plan, Wanted())]
    assert [plan.strategy, *rest] == ["all-pairs", "on-demand"]
    chosen = make(strategy="all-pairs").planner
    assert not [*chosen.instead_of(chosen.plan(720, 1280, Wanted()), Wanted())]

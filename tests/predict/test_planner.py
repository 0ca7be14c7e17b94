"""The planner predicts what a process takes, and takes the first way that fits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lcv.errors import ArgumentError, ShapeError
from lcv.predict import planner
from lcv.predict.matching import matcher_for
from lcv.predict.memory import parse_bytes
from lcv.predict.pairs import Wanted
from lcv.predict.planner import MARGIN
from lcv.predict.rehearsal import rehearse

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "planner.py"
CPU = torch.device("cpu")
NOTHING_ELSE = Wanted()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="high-water marks are Linux")
@pytest.mark.parametrize("strategy", ["all-pairs", "on-demand", "tiles"])
@pytest.mark.parametrize("size", [(540, 960), (720, 1280)], ids=["540x960", "720x1280"])
def test_a_prediction_is_within_15_percent_of_a_process(size, strategy):
    """The small version of benchmarks/planner.py, which has five sizes and both RAFTs."""
    command = [sys.executable, str(BENCHMARK), "--child", "raft-small", strategy, *map(str, size)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    assert found["predicted"] == pytest.approx(found["measured"], rel=0.15)
    assert not found["compiler"], "a plan must not load torch's compiler"


def test_the_first_way_that_fits_is_taken(make):
    """As the limit falls: all-pairs, on demand, tiles, smaller tiles, and then a refusal."""
    free = make("raft-large")
    sides, ways = [], []
    for limit in ("4GB", "1GB", "450MB", "350MB", "200MB"):
        plan = make("raft-large", max_memory=limit).plan(720, 1280)
        assert plan.bytes * MARGIN <= plan.limit == parse_bytes(limit)
        ways.append(plan.strategy)
        sides.append(plan.tiling.height if plan.tiling else 0)
    assert ways == ["all-pairs", "on-demand", "tiles", "tiles", "tiles"]
    assert sides[2] >= sides[3] > sides[4]
    assert free.plan(64, 64).strategy == "all-pairs"


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
    monkeypatch.setattr(planner, "free_bytes", lambda device: parse_bytes("300MB"))
    assert make("raft-large").plan(436, 1024).strategy == "tiles"
    # Who asks for a strategy gets it; memory that is free cannot be known exactly.
    assert make("raft-large", strategy="all-pairs").plan(436, 1024).strategy == "all-pairs"
    with pytest.raises(
        ArgumentError, match=r"(?s)max_memory is 300 MB.*all-pairs, which was asked"
    ):
        make("raft-large", strategy="all-pairs", max_memory="300MB").plan(436, 1024)
    monkeypatch.setattr(planner, "free_bytes", lambda device: parse_bytes("10MB"))
    with pytest.raises(ArgumentError, match="only 10 MB of memory are free, but raft-large needs"):
        make("raft-large").plan(436, 1024)


@pytest.mark.parametrize("name", ["vcn-small", "ddflow"])
def test_networks_with_one_way_are_planned_too(make, name):
    plan = make(name).plan(436, 1024)
    assert plan.strategy == "local"
    assert plan.bytes > make(name).plan(218, 512).bytes > 50e6
    with pytest.raises(ArgumentError, match=rf"{name} needs at least .* \(as local\)"):
        make(name, max_memory="40MB").plan(436, 1024)


def test_iterations_after_the_second_take_no_more(make):
    def peak(iters: int, strategy: str) -> int:
        matcher = matcher_for(make().model, "it", iters, None).with_strategy(strategy)
        return rehearse(matcher, (200, 296), NOTHING_ELSE, device=CPU)

    for strategy in ("all-pairs", "on-demand"):
        assert peak(2, strategy) == peak(20, strategy)


def test_more_that_is_asked_takes_more_and_less_precision_less(make):
    plain = make().plan(436, 1024).bytes
    assert make().plan(436, 1024, backward=True, occlusion=True, warp_error=True).bytes > plain
    assert make(precision="bf16").plan(436, 1024).bytes < plain


def test_a_plan_is_the_same_in_any_mode(make):
    wanted = make().plan(200, 296)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert make().plan(200, 296).bytes == wanted.bytes


def test_a_plan_is_made_once_a_size(make, monkeypatch):
    predictor = make()
    plan = predictor.plan(200, 296)
    monkeypatch.setattr(planner, "rehearse", None)
    assert predictor.plan(200, 296) is plan


def test_a_plan_in_words(make):
    whole = make(max_memory="2GB").plan(436, 1024).text
    assert re.fullmatch(r"1024×436: all-pairs, about \d+ MB of 2 GB", whole)
    tiles = make(max_memory="200MB").plan(720, 1280).text
    pattern = r"1280×720: tiles \(\d+ of \d+×\d+\), about \d+ MB of 200 MB; \d\.\d times the pixels"
    assert re.match(pattern, tiles)
    with pytest.raises(ShapeError, match="the frame is 40×30 pixels; raft-small needs at least 57"):
        make().plan(30, 40)


def test_a_plan_that_was_kept_outlives_any_number_of_others(make, monkeypatch):
    """A job's plan decides bits, so that no frame of another size may make it be chosen again."""
    ours = make()
    chosen = []

    def choose(self, height, width, wanted):
        chosen.append((height, width))
        return planner.Plan("all-pairs", height, width, 1)

    monkeypatch.setattr(planner.Planner, "_choose", choose)
    kept = planner.Plan("on-demand", 64, 72, 1)
    ours.planner.keep(kept, NOTHING_ELSE)
    for width in range(100, 300):
        ours.plan(64, width)
    assert len(chosen) == 200
    assert ours.plan(64, 72) is kept
    assert ours.plan(64, 72, backward=True).strategy == "all-pairs", "kept for what it was made for"

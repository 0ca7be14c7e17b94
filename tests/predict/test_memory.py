"""Plans: what a process takes is predicted, and the first strategy that fits is taken."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, ShapeError
from lcv.memory import parse_bytes
from lcv.predict import memory
from lcv.predict.matching import Wanted
from lcv.predict.memory import MARGIN, Plan
from lcv.predict.predictor import Predictor
from lcv.predict.tiles import Tiling

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
    with pytest.raises(ArgumentError, match="only 10 MB is free, but raft-large needs"):
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


def test_workers_on_one_machine_share_what_is_free_and_not_a_limit(make, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 900_000_000)
    predictor = make()
    predictor.planner.share = 3
    assert predictor.plan(200, 296).limit == 300_000_000
    with pytest.raises(ArgumentError, match="only 300 MB is free for each worker, but"):
        predictor.plan(20_000, 30_000)
    limited = make(max_memory="400MB")
    limited.planner.share = 3
    assert limited.plan(200, 296).limit == 400_000_000


def test_a_plan_is_made_once_a_size(make, monkeypatch):
    predictor = make()
    plan = predictor.plan(200, 296)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1)
    assert predictor.plan(200, 296) is plan


def test_a_plan_in_words(make):
    whole = make(max_memory="2GB").plan(436, 1024).text
    assert re.fullmatch(r"1024×436: all-pairs, about \d+ MB of 2 GB", whole)
    tiles = make(max_memory="150MB").plan(720, 1280).text
    pattern = r"1280×720: tiles \(\d+ of \d+×\d+\), about [\d.]+ MB of 150 MB; the flow differs"
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
    predictor = make(max_memory=limit)
    plan = predictor.plan(720, 1280)
    assert predictor.planner.from_json(json.loads(json.dumps(plan.as_json)), 720, 1280) == plan


def test_a_plan_that_no_planner_makes_is_refused(make):
    planner = make().planner
    whole = planner.from_json(["tiles", 136, 5.5], 96, 136)
    assert whole.tiling[:4] == ((0,), (0,), 96, 136)
    assert planner.from_json(["on-demand", None, None], 96, 136).bytes is None
    for kept in (
        *(["local", None, 5], ["all-pairs", 256, 5], ["tiles", None, 5], ["tiles", 100, 5]),
        *(["tiles", 448, 5], ["tiles", [[0], [0], 9, 9, [9, 9]], 5], [["tiles"], 136, 5]),
        *(["all-pairs", None, -1], ["all-pairs", None, 1e300], ["all-pairs", None, "5"]),
        *(["all-pairs", None], {"strategy": "tiles"}, "tiles", 7, None),
    ):
        with pytest.raises((KeyError, TypeError, ValueError)):
            planner.from_json(kept, 96, 136)


def test_what_runs_out_of_memory_has_other_plans_left(make):
    planner = make().planner
    plan = planner.plan(720, 1280, Wanted())
    rest = [each.strategy for each in planner.instead_of(plan, Wanted())]
    assert [plan.strategy, *rest] == ["all-pairs", "on-demand"]
    chosen = make(strategy="all-pairs").planner
    assert not [*chosen.instead_of(chosen.plan(720, 1280, Wanted()), Wanted())]


COSTS = {"constant": 1000, "per_pixel": 3, "both_ways": 5, "warp_error": 7}


def test_a_peak_is_the_volume_and_so_much_a_pixel(make):
    """Of a tile its own pixels count, and of the image what is held of the whole."""
    planner = make().planner
    planner.costs = {"all-pairs": COSTS, "tiles": {**COSTS, "per_image_pixel": 11}}
    held, pixels = memory.volume_bytes(planner.matcher.with_strategy("tiles"), 64, 72), 96 * 136
    whole = memory.volume_bytes(planner.matcher.with_strategy("all-pairs"), 96, 136)
    assert whole > held > 0
    for wanted, more in (
        (Wanted(), 0),
        (Wanted(backward=True), 5),
        (Wanted(occlusion=True), 5),
        (Wanted(warp_error=True), 7),
        (Wanted(True, True, True), 12),
    ):
        peak = planner.peak("all-pairs", (96, 136), wanted, None)
        assert peak == 1000 + whole + (3 + more) * pixels
        tiling = Tiling((0, 32), (0, 64), 64, 72, (64, 64))
        peak = planner.peak("tiles", (96, 136), wanted, tiling)
        assert peak == 1000 + held + 3 * 64 * 72 + (11 + more) * pixels
    planner.costs = None
    assert planner.peak("all-pairs", (96, 136), Wanted(), None) is None


def test_a_fifth_more_than_predicted_must_be_free(make, monkeypatch):
    planner = make().planner
    monkeypatch.setattr(planner, "peak", lambda strategy, *_: {"all-pairs": 1000}.get(strategy, 10))
    for limit, strategy in ((1200, "all-pairs"), (1199, "on-demand"), (12, "on-demand")):
        planner.limit = limit
        plan = planner._choose((96, 136), Wanted())
        assert (plan.strategy, plan.limit, plan.tiling) == (strategy, limit, None)
    planner.limit = 11
    with pytest.raises(ArgumentError, match="max_memory is .*, but raft-small needs at least"):
        planner._choose((96, 136), Wanted())


def test_the_largest_tiles_that_fit_are_taken(make, monkeypatch):
    """Sides from 1536 down to 256, whole multiples of 64, none much smaller than the one before."""
    planner = make(strategy="tiles").planner
    monkeypatch.setattr(planner, "peak", lambda strategy, size, wanted, tiling: tiling.height)
    sides = []
    for limit in range(1900, 307, -4):
        planner.limit = limit
        side = planner._choose((1800, 2000), Wanted()).tiling.height
        assert side * 1.2 <= limit
        sides += [side] * (side not in sides)
    assert sides == sorted(sides, reverse=True)
    assert (sides[0], sides[-1]) == (1536, 256)
    assert all(side % 64 == 0 for side in sides)
    assert all(after >= 0.8 * before for before, after in itertools.pairwise(sides))
    planner.limit = 307
    with pytest.raises(ArgumentError, match=r"\(as tiles of 256 pixels, which was asked for\)"):
        planner._choose((1800, 2000), Wanted())
    # An image that is smaller than any tile is one tile, but only where tiles were asked for.
    planner.limit = 10_000
    assert planner._choose((100, 200), Wanted()).tiling[:4] == ((0,), (0,), 100, 200)
    assert make().planner._make("tiles", (100, 256), Wanted()) is None
    assert make().planner._make("tiles", (100, 257), Wanted()).tiling.width == 256


def test_a_network_that_was_not_measured_has_no_costs():
    assert memory.costs_of("raft-small", "cpu") == memory.costs_of("raft-small", "abacus")
    assert memory.costs_of("nobody's", "cpu") is None
    assert {*memory.costs_of("raft-small", "cpu")} == {"all-pairs", "on-demand", "tiles"}


def test_a_plan_of_tiles_in_words():
    tiling = Tiling((0, 32), (0, 64), 64, 72, (64, 64))
    plan = Plan("tiles", 96, 136, 3_000_000, 5_000_000, tiling)
    assert plan.text == (
        "136×96: tiles (4 of 72×64), about 3 MB of 5 MB; the flow differs a little from the whole "
        "image's"
    )
    assert plan.as_json == ["tiles", 72, 3_000_000]


def test_less_memory_after_it_ran_out(make):
    planner = make().planner
    planner.costs = {"all-pairs": COSTS, "on-demand": {**COSTS, "constant": 1}}
    plan = Plan("all-pairs", 96, 136, 10**9, 10**10)
    needed = planner.peak("on-demand", (96, 136), Wanted(warp_error=True), None)
    assert [*planner.instead_of(plan, Wanted(warp_error=True))] == [
        Plan("on-demand", 96, 136, needed, 10**10)
    ]
    assert not [*planner.instead_of(dataclasses.replace(plan, strategy="on-demand"), Wanted())]
    tiled = dataclasses.replace(plan, tiling=Tiling((0,), (0,), 96, 136, (64, 64)))
    assert not [*planner.instead_of(tiled, Wanted())]


def test_a_volume_is_counted_in_whole_cells(make):
    """A last row or column that is not whole counts as one; a network without a volume has none."""
    matcher = make().matcher.with_strategy("all-pairs")
    counts = [memory.volume_bytes(matcher, *size) for size in ((96, 136), (89, 129), (97, 137))]
    assert counts[0] == counts[1] < counts[2]
    foreign = Predictor(lcv.wrap(lambda a, b: (a - b)[:, :2]), device="cpu").matcher
    assert memory.volume_bytes(foreign, 96, 136) == 0

"""Speed and memory: every comparison has its two sides, and numbers are what was measured."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import pytest
import torch

from lcv.bench import bench, bench_table, every_cell
from lcv.bench.cells import KINDS, Cell, _measured
from lcv.errors import ArgumentError, LcvError

SIZES = [(64, 72), (128, 96)]


def test_each_cell_has_a_twin_that_differs_in_lcv_alone():
    found = every_cell(["raft-small", "vcn"], [(80, 72), (128, 96)], 3, 2, "cpu")
    assert len(found) == len({*found}) == 2 * 2 * (2 + 1)
    for without, having in zip(found[::2], found[1::2], strict=True):
        assert (without.inner_product, having.inner_product) == KINDS
        assert {**asdict(without), "inner_product": having.inner_product} == asdict(having)
    assert {cell.strategy for cell in found if cell.model == "vcn"} == {"local"}
    assert {cell.iters for cell in found if cell.model == "vcn"} == {None}
    assert {cell.strategy for cell in found if cell.iters} == {"all-pairs", "on-demand"}


def test_an_unknown_network_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr("lcv.bench.cells._measured", lambda cell: pytest.fail("measured"))
    with pytest.raises(ArgumentError, match="unknown model 'rft'"):
        bench(["raft-small", "rft"], SIZES)


def test_a_cell_that_fails_leaves_the_others(monkeypatch):
    def measured(cell: Cell):
        if cell.strategy == "all-pairs":
            return {"error": "out of memory"}
        facts = {"device": "x", "threads": 1, "torch": "2"}
        numbers = {"seconds": [0.3, 0.1, 0.2], "peak_bytes": 3 * 2**20, "foretold_bytes": 5}
        return {**numbers, "provenance": facts}

    monkeypatch.setattr("lcv.bench.cells._measured", measured)
    told = []
    found = bench(["raft-small"], SIZES[:1], progress=lambda *words: told.append(words))
    assert [done for _, done, _ in told] == [0, 1, 2, 3]
    assert [row.get("error") for row in found["rows"]] == ["out of memory"] * 2 + [None] * 2
    assert found["rows"][2]["median_seconds"] == 0.2
    assert json.loads(json.dumps(found)) == found
    lines = bench_table(found).text().splitlines()
    assert lines[3].split()[:6] == ["raft-small", "no", "all-pairs", "64×72", "12", "failed"]
    assert lines[6].split() == [
        "raft-small",
        "yes",
        "on-demand",
        "64×72",
        "12",
        "200",
        "100",
        "to",
        "300",
        "3",
    ]


def test_nothing_measured_is_an_error_with_its_reason(monkeypatch):
    failed = _measured(Cell("raft-small", "euclidean", "all-pairs", 8, 8))
    assert failed["error"].startswith("frame1 is 8×8 pixels; raft-small needs at least")
    monkeypatch.setattr("lcv.bench.cells._measured", lambda cell: failed)
    with pytest.raises(LcvError, match=r"nothing could be measured.*needs at least"):
        bench(["raft-small"], SIZES)


@pytest.mark.parametrize(
    ("models", "sizes", "message"),
    [
        (["raft-small"], [], "bench: no size is given, wanted at least one"),
        ([], SIZES, "bench: no model is given, wanted at least one"),
        (["ddflow", "raft-small"], [(64, 72), (56, 72)], "size is 56x72, but raft-small needs at"),
    ],
)
def test_what_cannot_be_measured_is_refused_before(monkeypatch, models, sizes, message):
    monkeypatch.setattr("lcv.bench.cells._measured", lambda cell: pytest.fail("measured"))
    state = torch.get_rng_state()
    with pytest.raises(ArgumentError, match=message):
        bench(models, sizes)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is not known")
def test_a_larger_frame_takes_more_memory_in_both():
    """All costs of a pair grow with the square of its pixels: 4 times the pixels, 16 times."""
    sides = [128, 256]
    small, large = (
        _measured(Cell("raft-small", "elliptical", "all-pairs", side, side, 1, 2)) for side in sides
    )
    assert len(small["seconds"]) == 2
    assert min(small["seconds"]) > 0
    costs = 4 * (256 // 8) ** 4  # of the large one, float32, its finest level alone
    assert large["peak_bytes"] - small["peak_bytes"] > 15 / 16 * costs
    assert large["provenance"]["threads"] >= 1

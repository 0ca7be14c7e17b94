"""Measuring: real numbers of real calls, and a failing cell leaves the others of its job."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from lcv.bench import measure as module
from lcv.bench.cells import Cell, Point, offer_of, table_jobs
from lcv.bench.measure import is_out_of_memory, measure, uses_tf32

CPU = torch.device("cpu")
POINT = Point(64, 72, 1, 1)
CELL = Cell("raft-small", POINT, "unfolded", "all-pairs", reference=True)


def test_a_job_of_all_ways_to_have_lcv(folder, fake_peer):
    offer = replace(offer_of("raft-small"), peers=())
    job = table_jobs(offer, POINT, gpu=False)[0]
    rows = measure(job, folder, CPU, repeats=4, seconds=1e-9)
    assert [len(row["seconds"]) for row in rows] == [3] * 4  # at least 3, then the time is up
    assert all(min(row["seconds"]) > 0 and row["first_seconds"] > 0 for row in rows)
    assert all("error" not in row for row in rows)
    reference, without, *same = rows
    assert "px_mean" not in reference
    assert "px_mean" not in without
    assert all(0 <= row["px_mean"] <= row["px_p99"] < 1e-3 for row in same)
    theirs = Cell("raft-small", POINT, "none", "", peer="elsewhere")
    (row,) = measure((theirs,), folder, CPU, repeats=1, seconds=1)
    assert row["px_mean"] > 0.1  # it computes something else, which shows


def test_a_cell_that_fails_leaves_the_others(folder):
    broken = replace(CELL, volume="none such", reference=False)
    failed, good = measure((broken, CELL), folder, CPU, repeats=1, seconds=1)
    assert failed["error"].startswith("ArgumentError: volume is 'none such'")
    assert failed["out_of_memory"] is False
    assert good["median_seconds"] == good["seconds"][0]


def test_a_batch_has_the_same_pair_in_every_place(folder):
    frames = module._frames(Point(64, 72, 3, 1), folder, torch.device("cpu"))
    assert [frame.shape for frame in frames] == 2 * [(3, 3, 64, 72)]
    assert not torch.equal(*frames)
    assert all(torch.equal(frame[0], each) for frame in frames for each in frame)


def test_lack_of_memory_is_told_apart(folder, monkeypatch):
    def make(cell, frames):
        raise torch.OutOfMemoryError("CUDA out of memory.\n Tried")

    monkeypatch.setattr(module, "make_call", make)
    (row,) = measure((CELL,), folder, CPU, repeats=1, seconds=1)
    assert row == {"error": "OutOfMemoryError: CUDA out of memory. Tried", "out_of_memory": True}
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("shapes"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is not known")
def test_the_peak_holds_the_volume(folder):
    side = 512  # its costs are so large a block that malloc never keeps one for later
    cell = replace(CELL, point=Point(side, side, 1, 1), reference=False)
    (row,) = measure((cell,), folder, CPU, repeats=1, seconds=1)
    costs = 4 * (side // 8) ** 4  # float32, the finest level alone
    assert row["peak_bytes"] >= costs
    assert row["reserved_bytes"] is None


def test_float32_is_float32_and_peers_get_what_helps_them():
    assert not uses_tf32(CELL)
    assert uses_tf32(replace(CELL, precision="tf32"))
    assert uses_tf32(replace(CELL, precision="bf16", peer="torchvision"))
    assert not uses_tf32(replace(CELL, precision="fp16", engine="prepared"))

"""Measuring: real numbers of real calls, and a failing cell leaves the others of its job."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lcv.bench import measure as module
from lcv.bench.calls import Call
from lcv.bench.cells import Cell, Point, offer_of, table_jobs
from lcv.bench.measure import is_out_of_memory, measure, uses_tf32
from lcv.data.synthetic.recipe import TRAINING

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


class Counts:
    """In place of `make_call`: notes the frames of every call that is made, and counts its runs."""

    def __init__(self):
        self.made, self.runs = [], []

    def __call__(self, cell, frames):
        number = len(self.made)
        self.made.append(tuple(frames[0].shape))
        return Call(lambda: self.runs.append(number), lambda out: torch.zeros(1, 2, 1, 1))


@pytest.mark.parametrize(
    ("engine", "seconds", "expected"),
    [  # calls of the small frame, then those of the real one before anything is timed
        ("plain", 0.5, [0, 1, 1]),
        ("plain", 2.0, [0, 1]),
        ("prepared", 2.0, [0, 1, 1, 1]),
        ("compiled", 2.0, [0, 0]),
    ],
)
def test_calls_before_the_timed_ones(tmp_path, monkeypatch, engine, seconds, expected):
    counts, freed = Counts(), []
    monkeypatch.setattr(module, "make_call", counts)
    monkeypatch.setattr(module, "give_back_freed", freed.append)
    timed = module._timed
    monkeypatch.setattr(module, "_timed", lambda call, device: (seconds, timed(call, device)[1]))
    torch.save(torch.zeros(2, 3, 160, 140, dtype=torch.uint8), tmp_path / "frames-160x140.pt")
    cell = replace(CELL, point=Point(160, 140, 2, 1), engine=engine, reference=False)
    row = {}
    module._first_call(cell, row, tmp_path, CPU)
    assert counts.runs == expected
    small = [] if engine == "compiled" else [(1, 3, 128, 128)]
    assert counts.made == [*small, (2, 3, 160, 140)]
    assert freed == [CPU]
    assert row["first_seconds"] == seconds


def test_timed_calls_end_after_three_when_time_is_up(tmp_path, monkeypatch):
    torch.save(torch.zeros(2, 3, 64, 72, dtype=torch.uint8), tmp_path / "frames-64x72.pt")
    monkeypatch.setattr(module, "make_call", Counts())
    monkeypatch.setattr(module, "_timed", lambda call, device: (1.0, None))
    for repeats, seconds, expected in ((10, 2.0, 3), (10, 5.0, 6), (4, 9.0, 4), (2, 0.5, 2)):
        (row,) = measure((CELL,), tmp_path, CPU, repeats, seconds)
        assert row["seconds"] == [1.0] * expected
        assert row["median_seconds"] == 1.0


def test_a_call_that_fails_when_timed_has_an_error_alone(tmp_path, monkeypatch):
    torch.save(torch.zeros(2, 3, 64, 72, dtype=torch.uint8), tmp_path / "frames-64x72.pt")
    calls = iter([(2.0, None), (1.0, None)])
    monkeypatch.setattr(module, "make_call", Counts())

    def timed(call, device):
        try:
            return next(calls)
        except StopIteration:
            raise RuntimeError("x" * 400) from None

    monkeypatch.setattr(module, "_timed", timed)
    (row,) = measure((CELL,), tmp_path, CPU, 5, 9.0)
    assert row == {"error": ("RuntimeError: " + "x" * 400)[:300], "out_of_memory": False}


def test_the_distance_from_the_reference_by_hand(tmp_path):
    flow = torch.zeros(1, 2, 10, 20)
    assert module._distance(replace(CELL, reference=False), flow, tmp_path) == {}
    assert module._distance(CELL, flow, tmp_path) == {}
    apart = flow.clone()
    apart[0, 0] = torch.arange(200.0).view(10, 20) * 3
    apart[0, 1] = torch.arange(200.0).view(10, 20) * 4
    other = replace(CELL, reference=False)
    found = module._distance(other, apart, tmp_path)
    # 0, 5, …, 995: their mean, and the 198th of 200.
    assert found == {"px_mean": pytest.approx(497.5), "px_p99": pytest.approx(985.0)}
    assert module._distance(replace(other, compared=False), apart, tmp_path) == {}
    for point in (Point(64, 72, 2, 1), Point(64, 72, 1, 2), Point(64, 80, 1, 1)):
        assert module._distance(replace(other, point=point), apart, tmp_path) == {}
    one = torch.ones(1, 2, 1, 1)
    module._distance(replace(CELL, model="a/b.py:c"), one, tmp_path)
    assert (tmp_path / "a-b-py-c-64x72-1-1.pt").exists()
    found = module._distance(replace(other, model="a/b.py:c"), one + 1, tmp_path)
    assert found["px_p99"] == pytest.approx(2**0.5)


def test_frames_are_made_once_and_are_a_procedural_pair_in_whole_grey_levels(tmp_path, monkeypatch):
    asked = []

    def made(*words):
        asked.append(words)
        return SimpleNamespace(
            image1=torch.full((1, 3, 8, 9), 9.6), image2=torch.full((1, 3, 8, 9), 200.2)
        )

    monkeypatch.setattr(module, "generate", made)
    for _ in range(2):
        frames = module._frames(Point(8, 9, 2), tmp_path, CPU)
        assert torch.equal(frames[0], torch.full((2, 3, 8, 9), 10.0))
        assert torch.equal(frames[1], torch.full((2, 3, 8, 9), 200.0))
    assert asked == [(TRAINING, 1, range(1), (8, 9), CPU)]


def test_lack_of_memory_of_the_host_is_known_too():
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(ValueError("can't allocate memory"))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_gpu_is_waited_for_before_and_after(kind, monkeypatch):
    events, device = [], torch.device(kind)
    clock = SimpleNamespace(perf_counter=lambda: events.append("clock") or 2.0 * len(events))
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(torch.cuda, "synchronize", events.append)
    call = Call(lambda: events.append("run") or "flow", lambda out: out)
    wait = [device] if kind == "cuda" else []
    seconds = 4.0 + 2.0 * len(wait)
    assert module._timed(call, device) == (seconds, "flow")
    assert events == [*wait, "clock", "run", *wait, "clock"]

"""benchmarks/folder.py computes all pairs of a folder, and keeps or removes their flows as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import folder

from lcv.predict.predictor import Predictor
from lcv.predict.selection import Shard

SETTINGS = {"model": "raft-small", "iters": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("frames")
    folder.write_frames(place / "many", 4, (128, 128), "cpu")
    return place


@pytest.mark.parametrize("keep", [True, False])
def test_flows_are_kept_or_removed(place, tmp_path, keep):
    folder.compute(Predictor(**SETTINGS), place / "many", tmp_path / "out", Shard(1, 1), keep)
    (log,) = (tmp_path / "out" / "done").iterdir()
    assert len(log.read_text().splitlines()) == 3
    assert len(list((tmp_path / "out").rglob("*.flo"))) == 3 * keep


def test_every_part_is_timed_alone(place):
    found = folder.alone(SETTINGS, place)
    assert list(found) == ["read", "computed", "written and kept", "written and removed"]
    assert min(found.values()) > 0

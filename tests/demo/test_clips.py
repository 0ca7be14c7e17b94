"""Clips of a whole video: one a network, in shared colours, and none that nobody waits for."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.data.formats.video import read_video
from lcv.demo import clips
from lcv.demo.clips import make_clips
from lcv.demo.frames import Chosen
from lcv.demo.work import Settings
from lcv.predict.result import FlowResult
from testing.footage import SIZE, moving

SETTINGS = Settings(models=("raft-small", "raft-large"))
CHOSEN = Chosen(tuple(moving(3)), "video")


class Sliding:
    """A stream in which everything moves as far as its network's name is long."""

    def __init__(self, name):
        self.x, self.count = len(name), 0

    def push(self, frame):
        self.count += 1
        flow = np.tile(np.float32([self.x, 0.0]), (*SIZE, 1))
        return FlowResult(flow) if self.count > 1 else None


@pytest.fixture(autouse=True)
def networks(monkeypatch):
    monkeypatch.setattr(clips, "network", lambda name, iters: name)
    monkeypatch.setattr(clips, "Stream", Sliding)


def test_each_network_has_a_clip_and_tells_its_progress(tmp_path):
    steps = list(make_clips(CHOSEN, SETTINGS, None, lambda name: tmp_path / f"{name}.mp4"))
    assert [step[:2] for step in steps] == [
        (name, done) for name in SETTINGS.models for done in (1, 2, 2)
    ]
    paths = [path for *_, path in steps if path is not None]
    assert [path.name for path in paths] == ["raft-small.mp4", "raft-large.mp4"]
    for path in paths:
        frames = list(read_video(path))
        assert len(frames) == 2
        assert frames[0].shape[1] >= 2 * SIZE[1], "frame and flow"


def test_a_clip_that_nobody_wants_any_more_is_not_finished(tmp_path):
    path_for = lambda name: tmp_path / f"{name}.mp4"  # noqa: E731
    steps = list(make_clips(CHOSEN, SETTINGS, None, path_for, wanted=lambda: False))
    assert steps == [("raft-small", 1, None)]

"""The log of a run: its lines, who hears them, and what a resumed run forgets of it."""

from __future__ import annotations

import time

import numpy as np

from lcv.train.log import Log, read_log


class Watcher:
    def __init__(self) -> None:
        self.heard, self.seen = [], []

    def __call__(self, entry):
        self.heard.append(entry)

    def picture(self, name, step, picture):
        self.seen.append((name, step, picture.shape))


def test_a_line_an_entry_for_the_file_and_for_those_who_listen(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1234.5678)
    heard, watcher = [], Watcher()
    log = Log(tmp_path / "log.jsonl", 0, (heard.append, watcher))
    log.write("train", 3, loss=1.5)
    log.write("note", 4, text="über")
    log.picture("a/0", 4, np.zeros((2, 3, 3), np.uint8))
    assert log.path.read_text(encoding="utf-8").splitlines()[0] == (
        '{"kind": "train", "step": 3, "time": 1234.6, "loss": 1.5}'
    )
    assert read_log(log.path) == heard == watcher.heard
    assert heard[1]["text"] == "über"
    assert watcher.seen == [("a/0", 4, (2, 3, 3))]


def test_what_came_after_the_checkpoint_and_a_line_cut_by_a_kill_are_forgotten(tmp_path):
    path = tmp_path / "log.jsonl"
    whole = [f'{{"kind": "train", "step": {step}}}' for step in (2, 4, 6)]
    path.write_text("\n".join([whole[0], '{"kind": "tra', whole[1], whole[2], '{"ki']))
    Log(path, 4)
    assert path.read_text() == f"{whole[0]}\n{whole[1]}\n"

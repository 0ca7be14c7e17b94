"""The way of a pair: few modules from the command line to the network, listed in the package."""

from __future__ import annotations

import re
import sys

import pytest

import lcv.predict
from lcv.cli import main as cli
from lcv.models.raft.model import RAFT
from testing.footage import save_frames, save_weights

MOST = 12


def test_a_pair_crosses_at_most_twelve_modules_which_are_listed(tmp_path, monkeypatch):
    save_frames(tmp_path, 2)
    weights = save_weights(tmp_path / "weights.safetensors")
    crossed: list[str] = []
    match = RAFT.match

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        is_called = event == "call" and frame.f_code.co_name != "<module>"
        if is_called and module.startswith("lcv.predict.") and module not in crossed:
            crossed.append(module)

    def arrived(*arguments, **more):
        sys.setprofile(None)
        return match(*arguments, **more)

    monkeypatch.setattr(RAFT, "match", arrived)
    names = [str(tmp_path / f"frame_{number}.png") for number in (1, 2)]
    words = ["predict", *names, "-o", str(tmp_path / "out"), "--quiet", "--model", "raft-small"]
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert cli.main([*words, "--weights", str(weights), "--iters", "1", "--device", "cpu"]) == 0
    finally:
        sys.setprofile(before)
    listed = re.findall(r"^    (\w+)   ", lcv.predict.__doc__, re.MULTILINE)
    assert [module.removeprefix("lcv.predict.") for module in crossed] == listed
    assert len(listed) <= MOST


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match=r"^module 'lcv\.predict' has no attribute 'nothing'$"):
        lcv.predict.nothing  # noqa: B018

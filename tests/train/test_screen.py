"""The screening script: what is trained, that it is trained once, and what a comparison says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from lcv.errors import ArgumentError

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "screen.py"
SMALL = {
    "model.name": "raft-small",
    "data.detailed": False,
    "data.size": [64, 64],
    "data.ahead": 1,
    "steps": 1,
    "batch": 1,
    "precision": "float32",
    "graph": False,
    "compile": False,
    "validate_iters": 1,
}


@pytest.fixture
def screen(monkeypatch):
    spec = importlib.util.spec_from_file_location("screen", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "screen", module)  # where its dataclass looks for itself
    spec.loader.exec_module(module)
    return module


def test_variants_are_trained_once_and_compared(
    screen, development_sets, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("lcv.train.development.PAIRS", 2)
    words = [str(tmp_path / "out"), "--device", "cpu"]
    for name, value in SMALL.items():
        words += ["--set", name, json.dumps(value)]
    assert screen.main([*words, "base", "no-street"]) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "base-0.json",
        "no-street-0.json",
    ]
    left = json.loads((tmp_path / "out" / "no-street-0.json").read_text(encoding="utf-8"))
    assert (left["step"], left["seed"], left["config"]["data"]["recipe"]) == (1, 0, "no-street")
    capsys.readouterr()
    there = ["base", "--compare", "base", "--json", str(tmp_path / "compared.json")]
    assert screen.main([*words, *there]) == 0
    out = capsys.readouterr().out
    assert "base-0.json: there already" in out
    assert "no-street         split " in out
    rows = json.loads((tmp_path / "compared.json").read_text(encoding="utf-8"))
    assert [row["set"] for row in rows] == ["all", "still", "split"]


def write(folder, variant, seed, **epe):
    content = {"variant": variant, "seed": seed, "step": 5, "epe": epe}
    (folder / f"{variant}-{seed}.json").write_text(json.dumps(content))


def test_a_comparison_by_hand(screen, tmp_path):
    for seed in (0, 1):
        write(tmp_path, "base", seed, slow=[0.1, 0.2] * 8, fast=[10.0, 20.0] * 8)
        write(tmp_path, "half", seed, slow=[0.05, 0.1] * 8, fast=[10.0, 20.0] * 8)
    write(tmp_path, "half", 2, slow=[9.0] * 16, fast=[9.0] * 16)  # a seed that base has not
    whole, slow, fast = screen.compare(tmp_path, "base")
    assert whole["seeds"] == [0, 1]
    assert slow["change"] == pytest.approx(-0.075)
    assert slow["percent"] == pytest.approx(-50)
    assert slow["percent_interval"] == pytest.approx([-50, -50])
    assert (fast["change"], fast["percent"]) == (0, 0)
    assert whole["percent"] == pytest.approx(100 * (0.5**0.5 - 1))
    marked = {
        line.split()[1]: line.endswith("*") for line in screen.table([slow, fast]).splitlines()[1:]
    }
    assert marked == {"slow": True, "fast": False}
    with pytest.raises(ArgumentError, match="has no result of 'other'; it has base, half"):
        screen.compare(tmp_path, "other")


def test_every_variant_can_be_configured(screen):
    for name in screen.VARIANTS:
        config = screen.configured(name, 3, {"data.textures": "x"})
        assert (config.seed, config.data.textures) == (3, "x")
    with pytest.raises(ArgumentError, match="no variant 'zzz', wanted one of base"):
        screen.configured("zzz", 0, {})

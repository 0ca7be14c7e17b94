"""Packed photographs: textures like any others, held out as before, read without PyAV."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

from lcv.data.formats.image import write_image
from lcv.data.synthetic.textures import is_held_out, load_bank, procedural_bank

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "pack_textures.py"


def test_packed_photographs_are_held_out_as_before(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("pack_textures", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "TILE", 32)
    (tmp_path / "photographs").mkdir()
    for number, tile in enumerate(procedural_bank(count=30, size=64)):
        wide = np.pad(tile.permute(1, 2, 0).numpy(), ((0, 0), (8, 8), (0, 0)))
        write_image(tmp_path / "photographs" / f"{number:02}.png", wide)
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "photographs"), str(tmp_path / "packed")])
    monkeypatch.setitem(sys.modules, "av", None)
    assert script.main() == 0
    assert "grey levels from the photographs" in capsys.readouterr().out
    files = [sorted((tmp_path / name).iterdir()) for name in ("photographs", "packed")]
    parts = [[is_held_out(path) for path in folder] for folder in files]
    assert parts[0] == parts[1]
    before, after = (load_bank(tmp_path / f, size=32).float() for f in ("photographs", "packed"))
    assert (before - after).abs().mean() < 3  # 1.6; another order has 60
    assert script.main() == 2  # the folder is there already

"""The bundled pair is what its script makes, and the example finds its motion."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

import lcv
from lcv.data.synthetic.sequence import generate

EXAMPLES = Path(__file__).parents[1] / "examples"


def module(name: str) -> ModuleType:
    """A script of the folder as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, EXAMPLES / name)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_bundled_pair_is_what_its_script_makes():
    made = generate(module("pair/make.py").RECIPE, 3, range(1), (384, 512))
    for name, image in (("frame1", made.image1), ("frame2", made.image2)):
        stored = lcv.read_image(EXAMPLES / "pair" / f"{name}.png").astype(np.float32)
        # A grey level is what devices and versions may differ by.
        assert np.abs(stored - image[0].movedim(0, 2).round().numpy()).max() <= 1
    flow, valid = lcv.read_flow(EXAMPLES / "pair" / "truth" / "flow.png")
    assert valid.all()
    # KITTI's files hold steps of 1/64 px.
    assert np.abs(flow - made.flow[0].movedim(0, 2).numpy()).max() <= 1 / 64


def test_the_example_writes_flow_and_a_picture(tmp_path, capsys, monkeypatch):
    demo = module("demo.py")
    monkeypatch.setattr(demo, "MODELS", ("raft-small",))
    demo.main(tmp_path / "out")
    flow, _ = lcv.read_flow(tmp_path / "out" / "raft-small.flo")
    truth, _ = lcv.read_flow(EXAMPLES / "pair" / "truth" / "flow.png")
    error = np.linalg.norm(flow - truth, axis=2).mean()
    assert error < 0.2 * np.linalg.norm(truth, axis=2).mean()
    assert f"raft-small           EPE {error:.2f} px" in capsys.readouterr().out
    assert lcv.read_image(tmp_path / "out" / "demo.png").shape[1] > 3 * 360

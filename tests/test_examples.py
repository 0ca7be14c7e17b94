"""The bundled pair is what its script makes, and the example finds its motion."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lcv
from lcv.data.formats.video import video_info
from lcv.data.synthetic.sequence import generate
from lcv.visual.video import clip

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


def film(path, jumps):
    """Frames of a texture that moves by 3 px each, and jumps."""
    rng = np.random.default_rng(0)
    large = np.kron(rng.integers(0, 256, (30, 36, 3)), np.ones((6, 6, 1))).astype(np.uint8)
    with clip(path, 10) as write:
        for k, jump in enumerate(jumps):
            write(large[10 + jump : 138 + jump, 3 * k : 3 * k + 160])
    return path


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return film(tmp_path_factory.mktemp("video") / "shaken.mp4", (0, 4, -3, 5, 0))


def test_points_are_followed(video, tmp_path, capsys, monkeypatch):
    example = module("track_points.py")
    monkeypatch.setattr(example, "ITERS", 4)
    example.main(str(video), tmp_path / "tracks.png")
    said = re.search(r"(\d+) points, (\d+) of them", capsys.readouterr().out)
    points, alive = map(int, said.groups())
    assert alive > points / 2 > 10
    assert lcv.read_image(tmp_path / "tracks.png").shape == (128, 160, 3)


def test_a_shaken_video_is_made_smooth(video, tmp_path, capsys, monkeypatch):
    example = module("stabilise.py")
    monkeypatch.setattr(example, "ITERS", 4)
    example.main(str(video), tmp_path / "steady.mp4")
    said = r"changes by ([\d.]+) px a frame, on the smooth path by ([\d.]+)"
    before, smooth = map(float, re.search(said, capsys.readouterr().out).groups())
    example.main(str(tmp_path / "steady.mp4"), tmp_path / "again.mp4")
    after = float(re.search(said, capsys.readouterr().out)[1])
    assert smooth < 0.2 * before
    assert after < 0.5 * before


def test_frames_in_between_are_nearer_than_their_mean(tmp_path, capsys, monkeypatch):
    video = film(tmp_path / "even.mp4", (0, 0, 0, 0, 0))
    example = module("interpolate.py")
    monkeypatch.setattr(example, "ITERS", 4)
    example.main(str(video), tmp_path / "twice.mp4")
    ours, mean, repeated = map(float, re.findall(r"\d+\.\d+", capsys.readouterr().out))
    assert ours < mean
    assert ours < repeated
    assert video_info(tmp_path / "twice.mp4").frames == 9

"""What a run leaves to look at: a sentence a dataset and, with matplotlib, a picture."""

from __future__ import annotations

import json
import sys

from PIL import Image

from lcv.train import TrainConfig
from lcv.train.curve import Curve, curve_figure, leave_curve, read_curves, sentence
from testing.extras import needs

ENTRIES = [
    {"kind": "train", "step": 50, "loss": 9.0, "epe": 5.5},
    {"kind": "train", "step": 100, "loss": 8.0, "epe": 4.5},
    {"kind": "validation", "step": 100, "p/epe": 4.0, "p/fl": 80.0, "p/zero_flow_epe": 5.0},
    {"kind": "train", "step": 200, "loss": 7.0},
    {"kind": "validation", "step": 200, "p/epe": 2.0, "p/zero_flow_epe": 5.0, "k/epe": 7.0},
]


def logged(folder, entries=ENTRIES, **settings) -> TrainConfig:
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return TrainConfig(folder=str(folder), **settings)


def test_curves_are_read_from_the_log(tmp_path):
    config = logged(tmp_path / "run")
    curves, training = read_curves(config.folder)
    assert curves == [Curve("p", [100, 200], [4.0, 2.0], 5.0), Curve("k", [200], [7.0])]
    assert training == Curve("training", [50, 100], [5.5, 4.5])


def test_the_last_error_and_its_share_of_zero_flow_are_said():
    curve = Curve("p", [100, 200], [4.0, 2.0], 5.0)
    assert sentence(curve) == "p: EPE 2.000 px after step 200, 40.0% of the 5.000 px of zero flow"
    assert sentence(curve, 0.6).endswith("of zero flow (wanted: below 60%)")
    assert sentence(Curve("k", [200], [7.0])) == "k: EPE 7.000 px after step 200"


def test_the_picture_has_the_curve_the_zero_flow_error_and_the_goal(tmp_path):
    needs("matplotlib")
    config = logged(tmp_path / "run", goal=0.6)
    (axis,) = curve_figure(*read_curves(config.folder), config.goal).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axis.get_lines()}
    looks = {
        line.get_label(): (line.get_linestyle(), line.get_linewidth(), line.get_marker() or "None")
        for line in axis.get_lines()
    }
    assert looks["training"] == ("-", 0.7, "None")
    assert looks["p, 2.00 px at the end"][:2] == ("-", 1.4)
    assert looks["p, zero flow: 5.00 px"] == ("--", 1, "None")
    assert looks["60% of it: 3.00 px"] == (":", 1, "None")
    assert axis.get_ylim()[0] == 0
    assert drawn["training"] == [[50, 5.5], [100, 4.5]]
    assert drawn["p, 2.00 px at the end"] == [[100, 4.0], [200, 2.0]]
    assert drawn["p, zero flow: 5.00 px"] == [[0, 5.0], [200, 5.0]]
    assert drawn["60% of it: 3.00 px"] == [[0, 3.0], [200, 3.0]]
    assert drawn["k, 7.00 px at the end"] == [[200, 7.0]]
    assert len(drawn) == 5

    lines = leave_curve(config)
    path = tmp_path / "run" / "curve.png"
    assert lines[-1] == f"the curve: {path}"
    assert len(lines) == 3
    with Image.open(path) as picture:
        assert picture.size == (912, 420)
    assert leave_curve(config) == lines, "a resumed run draws it anew"


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    config = logged(tmp_path / "run")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    lines = leave_curve(config)
    assert "p: EPE 2.000 px" in lines[0]
    assert "pip install 'lcv-flow[report]'" in lines[-1]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["log.jsonl"]


def test_a_run_without_validation_leaves_none(tmp_path):
    assert leave_curve(logged(tmp_path / "run", ENTRIES[:1])) == []


def test_the_census_loss_has_axes_of_its_own():
    curves = [
        Curve("p", [100, 200], [4.0, 2.0], 5.0),
        Curve("f", [100, 200], [3.0, 2.4], 4.0, "census"),
    ]
    assert (
        sentence(curves[1])
        == "f: census loss 2.400 after step 200, 60.0% of the 4.000 of zero flow"
    )
    figure = curve_figure(curves, Curve("training", [50], [5.5]))
    assert [axis.get_ylabel() for axis in figure.axes] == ["EPE, px", "census loss"]
    assert [len(axis.lines) for axis in figure.axes] == [3, 2]

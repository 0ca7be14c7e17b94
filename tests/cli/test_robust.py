"""`lcv robust`: a run by hand on a tiny dataset, a patch learned and used, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from lcv.cli import main as cli
from lcv.cli import robust
from lcv.models.build import build
from lcv.models.cards import save_weights
from testing import datasets as fake


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two pairs and a network with random weights."""
    folder = tmp_path_factory.mktemp("robust")
    fake.chairs(folder / "chairs", 2)
    save_weights(build("raft-small", "euclidean"), folder / "small.safetensors")
    return folder


def words(home, *more):
    model = ["--model", "raft-small", "--weights", str(home / "small.safetensors")]
    return [*model, "--data", f"tiny={home / 'chairs'}", "--iters", "1", "--device", "cpu", *more]


def test_learn_then_measure_then_go_on(home, tmp_path, capsys):
    patch = tmp_path / "patch.png"
    learn = [*words(home)[:4], "--data", str(home / "chairs"), "--steps", "2", "--iters", "1"]
    learn += ["--side", "16", "--diameters", "14", "18", "--margin", "4", "--device", "cpu"]
    assert robust.run(["learn", *learn, "-o", str(patch)]) == 0
    assert (
        "a patch learned against raft-small, small.safetensors in 2 steps"
        in capsys.readouterr().out
    )
    card = json.loads((tmp_path / "patch.json").read_text())
    assert card["network"]["weights"]["file"] == "small.safetensors"
    assert str(tmp_path) not in json.dumps(card)

    out = tmp_path / "out"
    study = words(home, "--stress", "gamma", "--patch", str(patch))  # which adds its own stresses
    study += ["--margin", "4", "--levels", "gamma=0.5,1", "patch=20", "-o", str(out)]
    assert robust.run(study) == 0
    captured = capsys.readouterr()
    assert f"{out / 'robustness.json'}: 6 cells" in captured.out
    assert "tiny, gamma 0.5" in captured.err
    said = json.loads((out / "robustness.json").read_text())
    [harm] = said["harm"]
    assert harm["box"] == "white"
    assert harm["matched_harm"] is not None
    before = said["cells"]
    assert robust.run(study) == 0
    assert json.loads((out / "robustness.json").read_text())["cells"] == before
    capsys.readouterr()
    assert cli.main(["robust", *study, "--seed", "3"]) == 2
    assert "then and now differ in seed (0 and 3)." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--stress", "gama"], "there is no stress 'gama'"),
        (["--stress", "patch"], "the stress 'patch' needs a patch: --patch FILE"),
        (["--levels", "gamma=a"], "--levels gamma=a: wanted a stress and its levels"),
        (["--levels", "gamma"], "wanted a stress and its levels"),
        (["--levels", "gamma=0"], "gamma: g is 0.0, wanted a positive number"),
        (["--rule", "none", "--patch", "x.png"], "x.png"),
        (["--protocol", "rft"], "there is no protocol 'rft'"),
        (["--rule", "none"], "there is no rule 'none'"),
    ],
)
def test_a_users_mistake_is_one_sentence(home, tmp_path, capsys, more, message):
    assert cli.main(["robust", *words(home, *more), "-o", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_patch_that_cannot_be_saved_is_refused_before_it_is_learned(home, tmp_path, capsys):
    learn = ["robust", "learn", *words(home)[:4], "--steps", "100000", "-o"]
    assert cli.main([*learn, str(tmp_path / "patch.jpg")]) == 2
    assert "wanted a name ending in .png" in capsys.readouterr().err
    (tmp_path / "patch.json").write_text("{}")
    assert cli.main([*learn, str(tmp_path / "patch.png")]) == 2
    assert "patch.json: exists already" in capsys.readouterr().err


def test_learning_goes_on_from_a_picture_on_procedural_pairs(home, tmp_path, capsys):
    learn = [*words(home)[:4], "--steps", "1", "--iters", "1", "--batch", "1", "--pool", "1"]
    learn += ["--side", "16", "--diameters", "14", "18", "--margin", "4", "--device", "cpu"]
    learn += ["--size", "64", "72", "--recipe", "quick"]
    assert robust.run(["learn", *learn, "--start", "stripes", "-o", str(tmp_path / "a.png")]) == 0
    begun = str(tmp_path / "a.png")
    assert robust.run(["learn", *learn, "--start", begun, "-o", str(tmp_path / "b.png")]) == 0
    card = json.loads((tmp_path / "b.json").read_text())
    assert card["config"]["start"] == "a.png"
    assert card["config"]["objective"] == "error"
    assert str(tmp_path) not in json.dumps(card)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--start", "dots.png"], "dots.png"),
        (["--data", "x", "--objective", "error"], "--objective error needs truth"),
        (["--graph"], "--graph needs CUDA, and the device is cpu"),
        (["--recipe", "slow"], "--recipe is 'slow', wanted one of"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(home, tmp_path, capsys, more, message):
    learn = ["robust", "learn", *words(home)[:4], "--device", "cpu", "-o", str(tmp_path / "p.png")]
    assert cli.main([*learn, *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--data x -o y", "missing: --model M or --weights FILE, a network to put under stress"),
        ("--model m --data x", "missing: -o/--output FOLDER"),
        ("--model m --data x -o y --margin -1", "--margin is '-1', wanted a number of 0 or more"),
        ("learn -o y.png", "missing: --model M or --weights FILE"),
        (
            "learn --model raft-small --model raft-large -o y.png",
            "lcv robust learn: 2 networks, wanted one --model",
        ),
        (
            "learn --model raft-small -o y.png --diameters 5 2",
            "--diameters is 5 2, wanted the smaller",
        ),
        (
            "learn --model raft-small -o y.png --objective x",
            "lcv: --objective is 'x', wanted one of",
        ),
        ("--model m --data x -o y --limit 0", "--limit is '0', wanted a whole number of 1 or more"),
    ],
)
def test_usage_errors_leave_with_2(line, message, capsys):
    assert cli.main(["robust", *line.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("line", [["--help"], ["learn", "--help"]])
def test_help_takes_less_than_half_a_second(line):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "lcv.cli.main", "robust", *line], check=True, capture_output=True
        )
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_the_study_needs_neither_rich_nor_av_nor_jsonargparse_nor_matplotlib():
    """As on a machine that only measures."""
    program = (
        "import sys\n"
        "for name in ('av', 'rich', 'jsonargparse', 'matplotlib'): sys.modules[name] = None\n"
        "import lcv.cli.robust, lcv.studies.patch, lcv.studies.robustness.run, lcv.studies.patch_frames\n"
        "import lcv.studies.robustness.write\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

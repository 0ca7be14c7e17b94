"""`lcv ablate`: words to a study, a tiny one from end to end, and sentences for mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from lcv.cli import ablate
from lcv.cli import main as cli
from lcv.cli.ablate import SPLITS, _watch, base_from, make_parser
from lcv.errors import ArgumentError
from lcv.models.raft import RAFT
from lcv.studies import ablation
from lcv.studies.ablation_split import RULES
from lcv.studies.ablation_study import read_study
from lcv.train.loop import NotFinite
from lcv.train.together import Ended
from testing import datasets
from testing.ablating import invented, textures, weights


def test_help_loads_nothing_heavy_and_is_quick():
    code = """
import sys
from lcv.cli.main import main
try:
    main(["ablate", "--help"])
except SystemExit:
    pass
print("heavy:", sorted({"torch", "numpy", "rich", "av", "matplotlib"} & set(sys.modules)))
"""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
    assert "heavy: []" in done.stdout
    assert "1×1 convolution" in done.stdout
    assert min(seconds) < 0.5


def test_a_study_from_end_to_end_and_again_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lcv.train.validate.PAIRS", 2)
    monkeypatch.setattr(RAFT, "defaults", replace(RAFT.defaults, iters=1))
    real = datasets.middlebury(tmp_path / "real", ["Grove", "Urban"])
    words = ["ablate", "--weights", str(weights(tmp_path)), "-o", str(tmp_path / "out")]
    words += ["--columns", "lcv", "--seeds", "3", "--steps", "1", "--batch", "1"]
    words += ["--size", "64", "64", "--iters", "1", "--precision", "float32", "--pairs", "2"]
    words += ["--textures", str(textures(tmp_path / "t")), "--device", "cpu"]
    words += ["--test", f"paintings={real}", "--no-weights"]
    assert cli.main(words) == 0
    first = capsys.readouterr().out
    assert "lcv, seed 3: procedural EPE" in first
    assert "paintings EPE" in first
    study = read_study(tmp_path / "out")
    assert list(study.tests) == ["procedural", "paintings"]
    cell = study.cell("lcv", 3)
    pairs = study.result(cell)["last"]["tests"]["paintings"]["pairs"]
    assert pairs["names"] == ["middlebury/Grove", "middlebury/Urban"]
    assert not (study.folder_of(cell) / "weights.safetensors").exists()
    assert cli.main(words) == 0
    assert "2 of 2 cells are done" in capsys.readouterr().out
    assert cli.main(["ablate", "--show", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "full LCV" in shown
    assert "table.md, plot.svg" in shown


def test_a_drawn_table_on_a_terminal_and_a_plain_one_elsewhere(tmp_path, monkeypatch, capsys):
    invented(tmp_path / "out", {"continued": [1.0, 2.0], "lcv": [0.9, 1.8]})
    words = ["ablate", "--show", str(tmp_path / "out")]
    assert cli.main(words) == 0
    plain = capsys.readouterr().out
    (row, *_) = (line for line in plain.splitlines() if line.startswith("full LCV"))
    assert row.split()[2:4] == ["2", "1.350"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    assert cli.main(words) == 0
    assert "│ full LCV" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(words) == 0
    assert capsys.readouterr().out == plain


def base_of(*words):
    return base_from(make_parser().parse_args(list(words)))


def test_words_change_the_base_or_the_recipe():
    words = ("--lr", "2e-4", "--steps", "60", "--size", "96", "128")
    base = base_of("--weights", "raft-kitti", *words)
    assert (base.model.name, base.model.weights) == ("raft-large", "raft-kitti")
    base = base_of("--model", "raft-small", "--weights", "x.pth", *words)
    assert (base.model.name, base.model.weights) == ("raft-small", "x.pth")
    assert (base.optim.lr, base.steps, base.validate_every) == (2e-4, 60, 10)
    assert base.data.size == (96, 128)
    assert base_of("--weights", "random").model.weights is None
    base = base_of(
        "--recipe", "vcn_kitti", "--weights", "v.pth", "--data-root", "d", "--steps", "9"
    )
    assert (base.model.name, base.loss.name, base.steps) == ("vcn", "multiscale", 9)
    assert (base.data.root, base.data.source) == ("d", "files")
    assert base_of("--model", "ddflow", "--weights", "random").loss.name == "unsupervised"
    assert base.optim.w_lr_factor == 1
    assert base_of("--weights", "random", "--w-rate", "30").optim.w_lr_factor == 30
    with pytest.raises(ArgumentError, match="unknown model 'mine'; there are"):
        base_of("--model", "mine", "--weights", "random")


def test_a_recipe_for_a_gpu_can_be_ablated_without_a_graph(tmp_path):
    """A recipe's graph is kept unless something is said, so that no CPU is shut out."""
    recipe = tmp_path / "captured.py"
    recipe.write_text(
        "from lcv.train.config import TrainConfig\n"
        "def recipe():\n"
        "    return TrainConfig(graph=True)\n"
    )
    words = ("--recipe", str(recipe), "--weights", "random")
    assert base_of(*words).graph
    assert not base_of(*words, "--no-graph").graph
    assert not base_of("--weights", "random").graph
    assert base_of("--weights", "random", "--graph").graph


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "-o is missing, wanted the study's folder"),
        (["-o", "OUT"], "--weights is missing, wanted a checkpoint to start from"),
        (["-o", "OUT", "--weights", "gone.pth"], "gone.pth: there is no such file"),
        (["-o", "OUT", "--weights", "raft-small"], "already has a W, and the columns must start"),
        (["-o", "OUT", "--weights", "random", "--columns", "lvc"], "did you mean lcv"),
        (["-o", "OUT", "--weights", "random", "--test", "x=gone"], "there is no gone, wanted"),
        (
            ["-o", "OUT", "--weights", "random", "--steps", "0"],
            "--steps is '0', wanted a whole number",
        ),
        (
            ["-o", "OUT", "--weights", "random", "--pairs", "0"],
            "--pairs is '0', wanted a whole number",
        ),
        (
            ["-o", "OUT", "--weights", "random", "--split", "odd"],
            "--split is 'odd', wanted hash or",
        ),
        (
            ["-o", "OUT", "--weights", "random", "--size", "32", "64"],
            "size is 32×64, and raft-small takes images of at least 57×57",
        ),
        (
            ["-o", "OUT", "--model", "vcn", "--weights", "random", "--size", "64", "64"],
            "size is 64×64, and vcn takes images of at least 65×65",
        ),
        (
            ["-o", "OUT", "--weights", "random", "--graph", "--device", "cpu"],
            "a step is captured on CUDA alone, and there is none; use --no-graph",
        ),
        (["--show", "gone"], "gone: holds no ablation"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(words, sentence, tmp_path, capsys):
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    assert cli.main(["ablate", *words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_two_tests_of_one_name_are_refused(tmp_path, capsys):
    for name in ("a", "b"):
        datasets.middlebury(tmp_path / name / "set", ["Grove"])
    words = ["ablate", "-o", str(tmp_path / "out"), "--weights", "random"]
    words += ["--test", str(tmp_path / "a" / "set"), "--test", str(tmp_path / "b" / "set")]
    assert cli.main(words) == 2
    assert "two tests are called 'set'; use NAME=FOLDER" in capsys.readouterr().err


def test_a_failed_cell_gives_a_code_and_a_word(tmp_path, monkeypatch, capsys):
    error = NotFinite("step 1: the loss is not finite")
    monkeypatch.setattr(ablation, "run_together", lambda *_: [Ended(None, 0, error)])
    words = ["ablate", "--weights", str(weights(tmp_path)), "-o", str(tmp_path / "out")]
    words += ["--columns", "continued", "--seeds", "0", "--steps", "1", "--device", "cpu"]
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert "cells that failed: 1; the same" in captured.err
    assert json.loads((tmp_path / "out" / "study.json").read_text())["seeds"] == [0]


def test_one_cell_is_one_cell(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ablation, "run_together", lambda *_: [Ended(None, 0)])
    words = ["ablate", "--weights", str(weights(tmp_path)), "-o", str(tmp_path / "out")]
    words += ["--columns", "continued", "--steps", "1", "--device", "cpu", "--seeds"]
    assert cli.main([*words, "0"]) == 130
    assert "stopped with 1 cell to do;" in capsys.readouterr().out
    assert cli.main([*words, "0", "1"]) == 130
    assert "stopped with 2 cells to do;" in capsys.readouterr().out


def test_the_splits_are_those_of_the_study():
    assert SPLITS == RULES


def test_tests_by_name(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    assert ablate.tests_from([str(one), f"real={two}"]) == {"one": str(one), "real": str(two)}
    with pytest.raises(ArgumentError, match="there is no .*lost, wanted a dataset"):
        ablate.tests_from([f"real={tmp_path / 'lost'}"])
    with pytest.raises(ArgumentError, match="two tests are called 'one'; use NAME=FOLDER"):
        ablate.tests_from([str(one), f"one={two}"])


def test_validations_are_told_and_nothing_else(capsys):
    _watch({"kind": "validation", "step": 250, "validation/epe": 1.23456})
    _watch({"kind": "train", "step": 251})
    assert capsys.readouterr().out == "  step 250: validation EPE 1.235 px\n"


def test_what_is_not_said_of_a_study():
    chosen = make_parser().parse_args([])
    given = {"columns": ["paper"], "seeds": [0, 1, 2], "pairs": 200, "split": "hash", "test": []}
    assert {name: getattr(chosen, name) for name in given} == given
    assert not chosen.together
    assert not chosen.no_weights
    rest = {name: value for name, value in vars(chosen).items() if name not in given}
    assert set(rest.values()) == {None, False}
    assert {"output", "show", "model", "weights", "recipe", "data_root", "textures", "steps", "batch",
            "size", "iters", "lr", "w_rate", "precision", "graph", "validate_every", "together",
            "minutes", "no_weights", "device"} == rest.keys()  # fmt: skip

"""`lcv train finetune`: one command from a list of pairs to weights, numbers and a picture."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lcv.cli import finetune
from lcv.cli import main as cli
from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import read_image, write_image
from lcv.errors import ArgumentError
from lcv.train.config import TrainConfig

SMALL = ["--device=cpu", "--steps=2", "--loss.iters=1", "--validate_iters=1", "--batch=1"]


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    for name in "abc":
        (tmp_path / name).mkdir()
        rng = np.random.default_rng(ord(name))
        image = rng.integers(0, 256, (140, 150, 3), np.uint8)
        write_image(tmp_path / name / "1.png", image)
        write_image(tmp_path / name / "2.png", np.roll(image, 2, 1))
        flow = np.zeros((140, 150, 2), np.float32)
        flow[..., 0] = 2
        write_flow(tmp_path / name / "1.flo", flow)
        lines.append(f"{name}/1.png {name}/2.png {name}/1.flo\n")
    (tmp_path / "pairs.txt").write_text("".join(lines))
    return tmp_path / "pairs.txt"


def test_from_a_list_to_weights_numbers_and_a_picture(pairs, capsys):
    words = ["train", "finetune", "--pairs=pairs.txt", "--weights", "raft-small", *SMALL]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "raft-small: 2 pairs to train on, 1 held out (pairs:3); 2 steps of 1 crops of " in out
    assert out.count("before: EPE ") == 2
    assert "after:  EPE " in out
    assert "warning: One pair proves little." in out
    run = pairs.parent / "runs" / "finetune"
    assert read_image(run / "before-after.png").shape[1] > 4 * 150
    assert (run / "weights.safetensors").exists()
    assert (run / "held-out.txt").read_text().split()[0] == f'"{pairs.parent / "c" / "1.png"}"'
    config = json.loads((run / "config.json").read_text())
    assert config["model"]["inner_product"] == "elliptical"
    assert config["model"]["freeze_batch_norm"] is True
    assert cli.main(words) == 2  # at once, before anything is computed
    again = capsys.readouterr()
    assert "holds a run already; resume it (--resume auto)" in again.err
    assert again.out == ""
    # With --resume auto it goes on from there, and other pairs need another folder.
    assert cli.main([*words, "--resume=auto"]) == 0
    pairs.write_text("\n".join(pairs.read_text().splitlines()[::-1]))
    assert cli.main([*words, "--resume=auto"]) == 2
    assert "train.txt: lists other pairs than this run would use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--weights=raft-small"], "--pairs is missing: lcv train finetune --pairs LIST|FOLDER"),
        (["--pairs=pairs.txt"], "--weights is missing: lcv train finetune"),
        (["--pairs=none.txt", "--weights=raft-small"], "none.txt: there is no such file; wanted a"),
        (["--pairs=pairs.txt", "--weights=none.pth"], "none.pth"),
        (
            ["--pairs=pairs.txt", "--weights=raft-small", "--step=3"],
            "did you mean --stage or --steps",
        ),
    ],
)
def test_a_mistake_leaves_nothing_behind(pairs, capsys, words, message):
    assert cli.main(["train", "finetune", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (pairs.parent / "runs").exists()


def test_help_names_the_two_options(capsys):
    assert cli.main(["train", "finetune", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--pairs" in out
    assert "--weights" in out


def test_all_mistakes_are_told_at_once(capsys):
    assert cli.main(["train", "quick", "--lr=3", "--steps=x", "--batch", "y"]) == 2
    error = capsys.readouterr().err
    for part in ("--lr (did you mean --optim.lr?)", "--steps is 'x'", "--batch is 'y'"):
        assert part in error
    assert cli.main(["train", "quick", "--steps=0", "--precision=f16"]) == 2
    error = capsys.readouterr().err
    assert "precision is 'f16', wanted one of bf16" in error
    assert "steps is 0, wanted at least 1" in error


@pytest.mark.parametrize(
    ("held", "named"), [(1, "p0"), (3, "p0, p1, p2"), (5, "p0, p1, p2 and 2 more")]
)
def test_a_plan_in_a_line(held, named):
    config = SimpleNamespace(
        model=SimpleNamespace(name="raft-small"),
        data=SimpleNamespace(size=(64, 96)),
        steps=40,
        batch=3,
    )
    pairs = [SimpleNamespace(name=f"p{n}") for n in range(5)]
    plan = SimpleNamespace(config=config, train=pairs[:2], held_out=pairs[:held])
    assert finetune._summary(plan) == (
        f"raft-small: 2 pairs to train on, {held} held out ({named}); 40 steps of 3 crops of 64×96"
    )
    found = {"epe": 1.23456, "zero_flow_epe": 9.0}
    assert finetune._numbers(found) == "EPE 1.235 px on the held-out pairs, zero flow 9.000"


def test_a_first_look_leaves_the_rest_alone():
    first = finetune._first_look(["--pairs", "a.txt", "--steps", "3", "--model.name", "vcn"])
    assert vars(first) == {
        "pairs": "a.txt",
        "weights": None,
        "device": None,
        "folder": "runs/finetune",
        "model": "vcn",
    }
    with pytest.raises(ArgumentError, match="expected one argument: lcv train finetune --pairs"):
        finetune._first_look(["--pairs"])
    assert finetune._first_look(["--pair", "a.txt"]).pairs is None, "no abbreviation"


def test_the_configuration_is_printed_and_nothing_is_done(tmp_path, monkeypatch, capsys):
    config = TrainConfig(folder="out", steps=7)

    def make_plan(*words):
        assert words == (str(tmp_path), "raft-small", None, "runs/finetune", "cpu")
        return SimpleNamespace(config=config, train=[], held_out=[])

    monkeypatch.setattr("lcv.train.finetune.make_plan", make_plan)
    words = [f"--pairs={tmp_path}", "--weights=raft-small", "--device=cpu", "--print_config"]
    assert cli.main(["train", "finetune", *words, "--batch=3"]) == 0
    changed = replace(config, batch=3)
    assert capsys.readouterr().out == json.dumps(changed.as_dict(), indent=2) + "\n"
    assert [*tmp_path.iterdir()] == []

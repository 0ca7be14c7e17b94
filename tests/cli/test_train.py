"""`lcv train`: help in an instant, settings by name, and runs that can be stopped and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lcv.cli import main as cli
from lcv.cli import train as verb
from lcv.cli import train_parser
from lcv.cli.train_parser import field_docs
from lcv.recipes import load_recipe
from lcv.train.checkpoint import Folder
from lcv.train.config import OptimConfig, TrainConfig
from lcv.train.log import read_log
from testing.extras import needs

SMALL = [
    "--data.size=[64,64]",
    "--data.ahead=1",
    "--batch=2",
    "--loss.iters=2",
    "--log_every=1",
    "--validate_every=0",
    "--device=cpu",
]


def test_help_loads_nothing_heavy_and_is_quick():
    code = """
import sys
from lcv.cli.main import main
main(["train", "--help"])
print("heavy:", sorted({"torch", "numpy", "rich", "av"} & set(sys.modules)))
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The processor's time, which does not depend on what else the machine does.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    assert "heavy: []" in done.stdout
    assert "--optim.w_lr_factor" in done.stdout
    assert "W's rate as a multiple of the others'." in done.stdout
    assert all(name in done.stdout for name in ("raft_kitti", "quick", "--resume", "--device"))


def test_a_run_needs_neither_rich_nor_jsonargparse(tmp_path):
    code = """
import sys
from dataclasses import replace
import lcv.train
from lcv.recipes import load_recipe
config = load_recipe("quick")
data = replace(config.data, size=(64, 64), ahead=1)
config = replace(config, data=data, steps=1, batch=1, validate_every=0, folder=sys.argv[1])
lcv.train.run(config, device="cpu")
import lcv.train.files
print(sorted({"rich", "jsonargparse"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def printed(capsys, *words: str) -> dict:
    assert cli.main(["train", *words, "--print_config"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_configuration_is_the_recipes_but_for_what_is_changed(capsys):
    plain = printed(capsys, "raft_sintel")
    assert plain == json.loads(json.dumps(load_recipe("raft_sintel").as_dict()))
    changed = printed(
        capsys,
        "raft_sintel",
        "--optim.lr=1e-5",
        "--model.name",
        "raft-small",
        "--data.root",
        "/elsewhere",
        "--data.size=[64, 128]",
        "--model.options.form",
        "factor",
        "--validation.kitti",
        "/elsewhere/KITTI",
        "--loss.iters=null",
    )
    plain["optim"]["lr"] = 1e-5
    plain["model"] |= {"name": "raft-small", "options": {"form": "factor"}}
    plain["data"] |= {"root": "/elsewhere", "size": [64, 128]}
    plain["validation"]["kitti"] = "/elsewhere/KITTI"
    plain["loss"]["iters"] = None
    assert changed == plain


def test_what_is_printed_is_a_recipe(capsys, tmp_path):
    first = printed(capsys, "vcn_kitti", "--batch=4")
    (tmp_path / "mine.json").write_text(json.dumps(first))
    assert printed(capsys, str(tmp_path / "mine.json")) == first


STAGES = """
from dataclasses import replace
from lcv.recipes import load_recipe
from lcv.train import one_decay
def recipe():
    first = replace(load_recipe("quick"), steps=2, folder="runs/mine")
    return one_decay({"A": first, "B": replace(first, steps=1, seed=1)}, lr=1e-4)
"""


def test_stages_are_one_recipe_and_one_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(STAGES)
    said = printed(capsys, "mine.py", "--batch=1")
    assert [(c["steps"], c["seed"], c["batch"]) for c in said["stages"].values()] == [
        (2, 0, 1),
        (1, 1, 1),
    ]
    Path("mine.json").write_text(json.dumps(said))
    assert printed(capsys, "mine.json") == said
    words = ["train", "mine.json", *SMALL]
    assert cli.main([*words, "--minutes=0"]) == 130
    stopped = "runs/mine/A/stopped.safetensors"
    assert (
        f"stopped after step 0 of 2 and saved; the same command with --resume auto goes on, or "
        f"elsewhere with --start {stopped}" in capsys.readouterr().out
    )
    assert cli.main([*words, "--resume=auto"]) == 0
    assert "1 step done: runs/mine/B/weights.safetensors" in capsys.readouterr().out
    assert cli.main([*words, "--resume=auto"]) == 0
    assert capsys.readouterr().out == "all stages are done\n"
    first = "runs/mine/A/weights.safetensors"
    assert cli.main([*words, "--folder=runs/other", f"--start={first}"]) == 0
    weights = (Path("runs") / run / "B" / "weights.safetensors" for run in ("mine", "other"))
    assert len({file.read_bytes() for file in weights}) == 1
    assert cli.main(["ablate", "-o", "x", "--recipe", "mine.json", "--weights", "random"]) == 2
    assert "mine.json: has the stages A, B, wanted a recipe of one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["quick", "--optim.lrr", "1"],
            "--optim.lrr (did you mean --optim.lr?); `lcv train",
        ),
        (["quick", "--lr=1"], "there is no option --lr (did you mean --optim.lr?); `lcv train"),
        (
            ["quick", "--optim.zzz=1"],
            "--optim.zzz, wanted one of --optim.optimiser, --optim.lr, --optim.schedule, ",
        ),
        (
            ["quick", "--optim.lr", "fast"],
            "--optim.lr is 'fast', wanted a number; `lcv train RECIPE --help`",
        ),
        (["quick", "--steps", "0"], "lcv: --steps is 0, wanted at least 1"),
        (["quick", "--device", "gpu"], "--device is 'gpu', wanted cpu, cuda, or cuda:N"),
        (["quick", "--precision", "fp8"], "precision is 'fp8', wanted one of bf16"),
        (["quick", "more"], "unrecognized arguments: more"),
        (["quik"], "there is no recipe 'quik' (did you mean quick?); there are"),
        (["--steps", "3"], "the first word is '--steps', wanted a recipe: "),
        (
            ["raft_kitti", "--data.parts", "[{dataset: kitti, augmentation: x, wieght: 3}]"],
            "there is no data.parts[0].wieght, wanted weight",
        ),
        (
            ["quick", "--data.size", "64,96"],
            "is '64,96', wanted values in brackets, such as '[96, 1",
        ),
        (["quick", "--data.exclude", "a"], "wanted values in brackets, such as '[NAME, NAME]'; `l"),
        (
            ["quick", "--best", "nonsense/epe"],
            "lcv: --best is 'nonsense/epe', wanted a number that ",
        ),
        (
            ["quick", "--graph", "true", "--device", "cpu"],
            "--graph is True, which needs CUDA, and the device is cpu; use --graph False\n",
        ),
        (
            ["procedural", "--data.textures", "/none", "--graph=false", "--device=cpu"],
            "lcv: --data.textures is '/none': not a folder; wanted one with images",
        ),
        (
            ["ddflow_procedural_2"],
            "--model.weights is 'runs/ddflow_procedural_1b/weights.safetensors', and there is no "
            "such file; `lcv train ddflow_procedural_1b` makes it",
        ),
        (
            ["quick", "--loss.teacher", "runs/procedural/weights.safetensors"],
            "`lcv train procedural` makes it, or give another one: --loss.teacher FILE",
        ),
        (["quick", "--validation.x", "/none"], "validation.x: there is no /none; wanted a dataset"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("lcv: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_decides_the_result_is_refused_at_a_resume(tmp_path, capsys):
    words = ["train", "quick", *SMALL, f"--folder={tmp_path / 'run'}", "--resume=auto"]
    assert cli.main([*words, "--steps=1"]) == 0
    assert "\n1 step done: " in "\n" + capsys.readouterr().out
    before = (tmp_path / "run" / "config.json").read_bytes()
    for changed, message in (
        ("--optim.lr=0.5", "lcv: --optim.lr is 0.5, but was 0.0005 when the run of "),
        ("--model.name=raft-large", "--model.name is 'raft-large', but was 'raft-small' when the"),
        ("--data.size=[64,96]", "--data.size is [64, 96], but was [64, 64] when the run of "),
    ):
        assert cli.main([*words, "--steps=1", changed]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "another --folder" in error
        assert error.count("\n") == 1
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    assert cli.main([*words, "--steps=2", "--log_every=2", "--data.ahead=2"]) == 0
    assert "steps is now 2 in place of 1: after step 1 the rates" in capsys.readouterr().err


def test_a_recipes_help_shows_its_own_values(capsys):
    assert cli.main(["train", "raft_kitti", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Optimiser steps in all. (type: int, default: 50000)" in text


def test_every_setting_has_its_sentence():
    docs = field_docs(OptimConfig)
    assert set(docs) == set(OptimConfig.__dataclass_fields__)
    assert docs["lr"] == "The peak of the schedule."


def test_a_run_shows_its_numbers_and_can_be_read_by_tensorboard(tmp_path, capsys):
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = tmp_path / "run"
    words = ["train", "quick", *SMALL, "--steps=2", f"--folder={folder}", "--tensorboard=true"]
    assert cli.main([*words, "--validate_every=2", "--validate_iters=1"]) == 0
    captured = capsys.readouterr()
    assert f"2 steps done: {folder / 'weights.safetensors'}" in captured.out
    said = re.search(r"procedural: EPE (.*) px after step 2, (.*)% of the (.*) px", captured.out)
    assert said is not None
    epe, share, zero = map(float, said.groups())
    assert share == pytest.approx(100 * epe / zero, abs=0.1)
    assert (folder / "curve.png").is_file()
    assert (folder / "weights.safetensors").is_file()
    lines = [line for line in captured.err.splitlines() if line.startswith("step ")]
    assert [line.split()[1] for line in lines] == ["1/2", "2/2", "2"]
    assert "zero_flow_epe" in lines[2]
    assert all(word in lines[0] for word in ("loss", "EPE", "pairs/s", "GiB"))
    board = EventAccumulator(str(folder / "tensorboard"), {"histograms": 0}).Reload()
    logged = [e["loss"] for e in read_log(folder / "log.jsonl") if e["kind"] == "train"]
    shown = [event.value for event in board.Scalars("train/loss")]
    assert shown == pytest.approx(logged, rel=1e-6)
    assert {"train/p_angle", "train/w_distance", "validation/procedural/epe"} <= set(
        board.Tags()["scalars"]
    )
    assert [event.step for event in board.Histograms("train/w_spectrum")] == [1, 2]
    assert board.Tags()["images"] == [f"pictures/procedural/{i}" for i in range(4)]


def test_a_signal_saves_and_leaves_and_resume_goes_on(tmp_path, capsys):
    folder = tmp_path / "run"
    words = ["train", "quick", *SMALL, "--save_every=1000000", f"--folder={folder}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lcv.cli.main", *words, "--steps=1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        _wait_for_a_step(process, folder / "log.jsonl")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    newest = Folder(folder).newest()
    assert newest is not None
    step = newest[1]["step"]
    assert f"stopped after step {step} of 1000000 and saved" in out
    assert "Traceback" not in err
    assert cli.main([*words, f"--steps={step + 1}"]) == 2
    assert "holds a run already; resume it (--resume auto)" in capsys.readouterr().err
    assert cli.main([*words, f"--steps={step + 1}", "--resume=auto"]) == 0
    steps = [e["step"] for e in read_log(folder / "log.jsonl") if e["kind"] == "train"]
    assert steps == list(range(1, step + 2))


def _wait_for_a_step(process: subprocess.Popen[str], log: Path) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit and process.poll() is None:
        if log.exists() and '"train"' in log.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    raise AssertionError(f"no step was taken: {process.poll()}")


def test_an_option_and_its_value_are_taken_out():
    words = ["raft", "--a", "1", "--b=2", "--c", "--d", "3", "4"]
    for option, left in (
        ("--a", ["raft", "--b=2", "--c", "--d", "3", "4"]),
        ("--b", ["raft", "--a", "1", "--c", "--d", "3", "4"]),
        ("--c", ["raft", "--a", "1", "--b=2", "--d", "3", "4"]),
        ("--d", ["raft", "--a", "1", "--b=2", "--c", "4"]),
        ("--e", words),
    ):
        assert train_parser._without(words, option) == left


def test_names_that_are_near_wherever_they_are():
    known = ["--lr", "--optim.lr", "--data.size", "--data.root", "--steps", "--loss.stepz"]
    known += ["--a.stepq", "--b.stepw"]
    assert train_parser.nearest("--lr", known) == " (did you mean --lr or --optim.lr?)"
    assert train_parser.nearest("--data.sise", known) == " (did you mean --data.size?)"
    wanted = ", wanted one of --data.size, --data.root"
    assert train_parser.nearest("--data.quite_other", known) == wanted
    assert train_parser.nearest("--quite_other", known) == ""
    close = train_parser.nearest("--stepx", known)
    assert close.count("step") == 3, "three at most"


def test_the_words_of_jsonargparse_become_sentences():
    parser = train_parser.make_parser(TrainConfig())
    sentence = train_parser._sentence
    assert sentence("anything else", parser) == ("anything else", "")
    said = 'Parser key "steps": Expected an int. Got value: x'
    assert sentence(said, parser) == ("--steps is 'x', wanted a whole number", "--steps")
    said = "Parser key \"graph\": Expected a <class 'bool'>. Got value: 7"
    assert sentence(said, parser)[0] == "--graph is '7', wanted true or false"
    said = 'Parser key "data.exclude": Expected a tuple of names. Got value: x'
    wanted = "--data.exclude is 'x', wanted values in brackets, such as '[NAME, NAME]'"
    assert sentence(said, parser) == (wanted, "--data.exclude")
    said = 'Parser key "data.size": Expected a tuple. Got value: 3'
    like = json.dumps([*TrainConfig().data.size])
    assert sentence(said, parser)[0].endswith(f"such as '{like}'")
    assert train_parser._in_brackets("optim.drops", parser) == "[1000, 2000]"
    assert train_parser._is_known("--model.options.x", ["--model.options"])
    assert not train_parser._is_known("--model.optionsx", ["--model.options"])


def test_the_switches_of_a_run():
    found = train_parser.parse(train_parser.make_parser(TrainConfig()), ["raft"])
    own = {name: found[name] for name in ("resume", "stage", "start", "minutes", "device")}
    assert {*own.values()} == {None}
    assert found["tensorboard"] is False


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_without_a_recipe_every_setting_is_told(words, monkeypatch, capsys):
    class Parser:
        def print_help(self):
            print("all settings")

    monkeypatch.setattr(verb, "make_parser", lambda config: Parser())
    assert cli.main(["train", *words]) == 0
    assert capsys.readouterr().out == "all settings\n"


@pytest.mark.parametrize("step", [None, 4, 5])
def test_an_interrupt_after_the_last_step_loses_nothing(step, monkeypatch, capsys):
    """Before it, who interrupts is told what every interrupted command tells."""

    def interrupted(*words, **options):
        raise KeyboardInterrupt

    newest = None if step is None else ("file", {"step": step})
    folder = SimpleNamespace(newest=lambda: newest)
    monkeypatch.setattr("lcv.train.loop.run", interrupted)
    monkeypatch.setattr("lcv.train.checkpoint.Folder", lambda path: folder)
    monkeypatch.setattr("lcv.train.console.Terminal", contextlib.nullcontext)
    config = TrainConfig(folder="here", steps=5)
    if step != 5:
        with pytest.raises(KeyboardInterrupt):
            verb.train(config, None, "cpu", False)
        return
    assert verb.train(config, None, "cpu", False) == 130
    assert capsys.readouterr().out == "interrupted; all 5 steps of here are done and saved\n"


@pytest.mark.parametrize(("newest", "step"), [(("file", {"step": 2}), 2), (None, 0)])
def test_only_the_first_process_says_how_it_went(newest, step, monkeypatch, capsys):
    heard = []
    folder = SimpleNamespace(newest=lambda: newest)
    monkeypatch.setattr("lcv.train.loop.run", lambda *words, **options: heard.append(words))
    monkeypatch.setattr("lcv.train.checkpoint.Folder", lambda path: folder)
    monkeypatch.setattr("lcv.train.console.Terminal", lambda c: contextlib.nullcontext("shown"))
    config = TrainConfig(folder="here", steps=5)
    for rank, code, said in (
        ("1", 0, ""),
        ("0", 130, f"stopped after step {step} of 5 and saved; "),
    ):
        monkeypatch.setenv("RANK", rank)
        assert verb.train(config, "auto", "cpu", False) == code
        out = capsys.readouterr().out
        assert out.startswith(said) if said else out == ""
    assert heard == [(config, "auto", "cpu", ()), (config, "auto", "cpu", ("shown",))]

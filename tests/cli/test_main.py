"""The command line: help in an instant, sentences in place of tracebacks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lcv.cli import main as cli
from lcv.data.formats.image import write_image
from lcv.errors import LcvError

DESIGNED = [
    "predict",
    "view",
    "train",
    "eval",
    "submit",
    "ablate",
    "robust",
    "data",
    "inspect",
    "attach",
    "fold",
    "convert",
    "export",
    "bench",
    "report",
    "models",
    "demo",
]


def test_the_verbs_are_declared():
    assert sorted(cli.VERBS) == sorted(DESIGNED)
    for name, job in cli.VERBS.items():
        assert name in cli.usage()
        assert job in cli.usage()


@pytest.mark.parametrize("verb", [None, *cli.VERBS])
def test_help_takes_less_than_half_a_second(verb):
    command = [sys.executable, "-m", "lcv.cli.main", *filter(None, [verb]), "--help"]
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < 0.5:  # another process may have had the machine the first time
            return
    assert min(seconds) < 0.5


def test_an_unknown_verb_is_one_sentence_and_exit_code_2(capsys):
    assert cli.main(["predcit"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lcv: there is no verb 'predcit', wanted predict, view")
    assert "or demo (did you mean predict?); `lcv --help`" in captured.err
    assert captured.err.count("\n") == 1


def test_debug_shows_the_traceback():
    with pytest.raises(LcvError, match="no verb 'predcit'"):
        cli.main(["predcit", "--debug"])


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lcv 0.")


def test_an_interrupt_leaves_with_130(monkeypatch, capsys):
    def interrupted(words):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    assert cli.main(["predict"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_permission_that_is_missing_is_one_sentence(monkeypatch, capsys):
    def refused(words):
        raise PermissionError(13, "Permission denied", *words)

    monkeypatch.setattr(cli, "_run", refused)
    assert cli.main(["a\nb.png"]) == 2
    assert (
        capsys.readouterr().err
        == "lcv: a\\nb.png: permission denied; change its permissions, or use another path\n"
    )
    for words in (["a.png", "--debug"], []):
        with pytest.raises(PermissionError):
            cli.main(words)


def test_a_reader_that_leaves_early_is_no_error():
    """As in `lcv --help | head -1`."""
    command = [sys.executable, "-m", "lcv.cli.main", "--help"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait() == 0
    assert errors == ""


UNKNOWN = """
predict a.png b.png -o x.flo --model nosuch
predict a.png b.png -o x.flo --model vcn
predict a.png b.png -o - --weights nosuch.pth
predict a.png b.png -o x.flo --model nosuch.py:network
eval --data . --model nosuch
eval --data . --weights nosuch.pth
eval --data . --model raft-large --weights kitti=nosuch.pth
submit kitti --data . -o x --model nosuch
submit sintel --data . -o x --weights nosuch.pth
robust --data benchmark -o x --model nosuch
robust --data benchmark -o x --weights nosuch.pth
robust learn -o x.png --model nosuch
ablate -o x --model nosuch --weights random
ablate -o x --weights nosuch.pth
inspect nosuch -o x
inspect nosuch.pth -o x
inspect raft-small --weights nosuch.pth -o x
attach nosuch.pth x.safetensors
fold nosuch.pth x.safetensors
convert nosuch.pth x.safetensors
export nosuch -o x.onnx
export --weights nosuch.pth -o x.onnx
bench --model nosuch
demo --models raft-small,nosuch
demo --models nosuch.pth
train quick --model.name nosuch
train quick --model.weights nosuch.pth
train finetune --pairs . --weights nosuch.pth
train finetune --pairs nosuch.txt --weights raft-small
models --fetch nosuch
"""


def test_unknown_networks_and_weights_are_refused_before_torch_is_imported(tmp_path):
    for name in ("a.png", "b.png"):
        write_image(tmp_path / name, np.zeros((64, 72, 3), np.uint8))
    lines = UNKNOWN.strip().splitlines()
    script = (
        "import sys; from lcv.cli.main import main\n"
        "for line in sys.argv[1:]: print(main(line.split()), 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", script, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["2 False"] * len(lines), done.stderr
    for line, said in zip(lines, done.stderr.splitlines(), strict=True):
        assert ("vcn" if "vcn" in line else "nosuch") in said
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.png"}


NAME = "\x1b]0;owned\x07\x1b[2Jevil"
SHOWN = "\\u001b]0;owned\\u0007\\u001b[2Jevil"


def test_escape_sequences_in_names_are_shown_and_not_sent(tmp_path, capsys):
    torch.save({NAME: torch.tensor([torch.nan])}, tmp_path / f"{NAME}.pth")
    assert cli.main(["fold", str(tmp_path / f"{NAME}.pth"), str(tmp_path / "a.safetensors")]) == 2
    printed = capsys.readouterr()
    assert f"{SHOWN}.pth: {SHOWN} holds 1 of 1 numbers that are NaN" in printed.err
    assert "\x1b" not in printed.err + printed.out


def test_escape_sequences_in_results_are_shown_and_not_sent(capsys, monkeypatch):
    monkeypatch.setattr(cli, "_run", lambda words: print(f"{words[0]}: written"))
    cli.main([NAME])
    assert capsys.readouterr().out == f"{SHOWN}: written\n"


@pytest.mark.parametrize("fails", [MemoryError, RecursionError])
def test_too_much_memory_or_nesting_is_a_sentence(fails, capsys, monkeypatch):
    def run(words):
        raise fails("cannot allocate")

    monkeypatch.setattr(cli, "_run", run)
    assert cli.main(["eval"]) == 2
    assert capsys.readouterr().err.startswith("lcv: an input needs more ")


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_torch_without_memory_is_a_sentence(on, capsys, monkeypatch):
    def run(words):
        if on == "cpu":
            torch.empty(2**45)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(cli, "_run", run)
    assert cli.main(["eval"]) == 2
    said = "lcv: an input needs more memory than there is; --debug shows where\n"
    assert capsys.readouterr().err == said


def test_another_error_of_the_program_is_not_taken_for_want_of_memory(monkeypatch):
    def run(words):
        raise RuntimeError("a fault")

    monkeypatch.setattr(cli, "_run", run)
    with pytest.raises(RuntimeError, match="a fault"):
        cli.main(["eval"])


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["bench", "--model", "raft-tiny"], "lcv.bench"),
        (["predict", "{a}", "{b}", "-o", "{out}", "--model", "raft-tiny"], "lcv.predict.run"),
        (["eval", "--model", "raft-tiny", "--data", "benchmark"], "lcv.evaluate.protocols"),
        (
            ["submit", "kitti", "--model", "raft-tiny", "--data", "d", "-o", "o"],
            "lcv.evaluate.submit",
        ),
        (
            ["robust", "--model", "raft-tiny", "--data", "benchmark", "-o", "o"],
            "lcv.evaluate.protocols",
        ),
        (["robust", "learn", "--model", "raft-tiny", "-o", "o"], "lcv.provenance"),
        (["export", "raft-tiny", "-o", "o.onnx"], "lcv.export"),
        (["inspect", "raft-tiny", "-o", "o"], "lcv.visual.inspection"),
        (["demo", "--models", "raft-tiny"], "lcv.demo.serve"),
        (
            ["ablate", "--model", "raft-tiny", "--weights", "random", "-o", "o"],
            "lcv.studies.ablation",
        ),
    ],
)
def test_an_unknown_network_is_refused_before_anything_large_is_loaded(
    words, heavy, tmp_path, monkeypatch, capsys
):
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(b"not looked at yet")
    places = {name: str(tmp_path / f"{name}.png") for name in "ab"}
    places["out"] = str(tmp_path / "out")
    monkeypatch.setitem(sys.modules, heavy, None)
    assert cli.main([word.format(**places) for word in words]) == 2
    assert "unknown model 'raft-tiny'" in capsys.readouterr().err


@pytest.mark.parametrize("fails", [LcvError, MemoryError, RecursionError])
def test_debug_shows_the_traceback_of_every_error(fails, monkeypatch):
    def run(words):
        assert words == ["eval"]
        raise fails("x")

    monkeypatch.setattr(cli, "_run", run)
    with pytest.raises(fails):
        cli.main(["--debug", "eval"])


def test_who_reads_no_more_is_no_error(monkeypatch):
    """And what is left in the stream goes nowhere, so that Python has no error to tell at its end."""

    def run(words):
        raise BrokenPipeError

    told = []
    system = SimpleNamespace(
        environ=os.environ,
        devnull=os.devnull,
        O_WRONLY=os.O_WRONLY,
        open=lambda *words: told.append(words) or 70,
        dup2=lambda *words: told.append(words),
    )
    monkeypatch.setattr(cli, "_run", run)
    monkeypatch.setattr(cli, "os", system)
    monkeypatch.setattr(cli.sys, "stdout", SimpleNamespace(fileno=lambda: 71))
    assert cli.main(["models"]) == 0
    assert told == [(os.devnull, os.O_WRONLY), (70, 71)]


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_without_a_verb_they_are_all_told(words, capsys):
    assert cli.main(words) == 0
    assert capsys.readouterr().out == cli.usage() + "\n"

"""`lcv export` as a user meets it: a table, a file, and sentences for what is wrong."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch

import lcv
from lcv.cli import main as cli
from lcv.errors import LcvError
from lcv.export import read_metadata
from lcv.models.embedded import embedded_file
from lcv.models.published import sha256_of


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "mine.safetensors"
    lcv.save(lcv.build("raft-small"), path)
    return path


def test_a_file_and_its_table(weights, tmp_path, capsys):
    out = tmp_path / "mine.pt2"
    words = ["export", "raft-small", "--weights", str(weights), "-o", str(out)]
    assert cli.main([*words, "--size", "64x72", "--iters", "1"]) == 0
    shown = capsys.readouterr()
    assert "tracing raft-small, 64×72 …" in shown.err
    assert f"mine.safetensors, sha256 {sha256_of(weights)}" in shown.out
    assert f"{out}: written" in shown.out
    metadata = read_metadata(out)
    assert metadata["weights"]["sha256"] == sha256_of(weights)
    assert metadata["iters"] == 1
    for row in metadata["error"]["measured"]:
        assert "×".join(map(str, row["image"])) in shown.out
        assert f"{row['mean']:.1e}" in shown.out

    assert cli.main([*words, "--size", "64x72", "--iters", "1"]) == 2
    assert "mine.pt2: exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["raft-small", "-o", "x.tflite"], "x.tflite: wanted a name ending in .onnx or .pt2"),
        (["raft-small", "-o", "no/x.pt2"], "the folder no does not exist"),
        (["vcn", "-o", "x.pt2", "--size", "128x128"], "no weights of this network come with"),
        (["raft-huge", "-o", "x.pt2", "--weights", "W"], "unknown model 'raft-huge' (did you"),
        (["raft-large", "-o", "x.pt2", "--weights", "W"], "these are weights of raft-small"),
        (["raft-small", "-o", "x.pt2", "--weights", "none.pth"], "none.pth: there is no such file"),
        (["raft-small", "-o", "x.pt2", "--weights", "W", "--iters", "0"], "--iters is '0'"),
        (["raft-small", "-o", "x.pt2", "--weights", "W", "--size", "60x72"], "the next is 64×72"),
    ],
)
def test_mistakes_are_sentences(words, sentence, weights, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [str(weights) if word == "W" else word for word in words]
    assert cli.main(["export", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("lcv: ")
    assert not list(tmp_path.glob("x.*"))


def test_weights_that_come_with_the_package_are_named_by_their_hash(tmp_path, monkeypatch):
    """The rest of the way is that of a file; only what the exporter is given differs."""
    given = {}

    def note(model, output, **options):
        given.update(options, model=model)
        raise LcvError("enough")

    monkeypatch.setattr("lcv.export.export_model", note)
    assert cli.main(["export", "raft-small-vanilla", "-o", str(tmp_path / "x.onnx")]) == 2
    assert given["weights"] == embedded_file("raft-small-vanilla")
    assert given["model"].spec.name == "raft-small"
    assert given["size"] is None


@pytest.mark.parametrize("size", ["64", "64x", "axb", "-8x64"])
def test_a_size_that_is_none(size, capsys):
    assert cli.main(["export", "raft-small", "-o", "x.pt2", f"--size={size}"]) == 2
    wanted = f"lcv: --size is {size!r}, wanted HxW, for instance 440x1024; `lcv export --help`"
    assert wanted in capsys.readouterr().err


def test_half_precision_is_for_onnx(tmp_path, capsys):
    assert cli.main(["export", "raft-small", "-o", str(tmp_path / "a.pt2"), "--half"]) == 2
    assert "half precision is for ONNX; leave out --half, or write .onnx" in capsys.readouterr().err


def test_help_takes_less_than_half_a_second():
    command = [sys.executable, "-m", "lcv.cli.main", "export", "--help"]
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
    assert "99.9 % of the pixels" in " ".join(shown.split())

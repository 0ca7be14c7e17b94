"""`lcv eval`: published numbers in one command, two processes as one, differences, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
import torch

import lcv
from lcv.cli.eval import parse_weights
from lcv.cli.main import main
from lcv.errors import ArgumentError
from testing import datasets
from testing.shared import shared


def test_words_become_weights_by_dataset(tmp_path, monkeypatch):
    assert parse_weights(["a.pth", "kitti=b.pth"]) == {"": "a.pth", "kitti": "b.pth"}
    assert parse_weights([]) == {}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run=3.pth").touch()
    assert parse_weights(["run=3.pth"]) == {"": "run=3.pth"}, "a file that is there is a file"
    with pytest.raises(ArgumentError, match="'a' and 'b' are both for all datasets; wanted one"):
        parse_weights(["a", "b"])
    with pytest.raises(ArgumentError, match="are both for kitti; wanted one"):
        parse_weights(["kitti=a", "kitti=b"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two networks with random weights, and two small datasets."""
    root = tmp_path_factory.mktemp("made")
    for seed in (0, 1):
        torch.manual_seed(seed)
        lcv.save(lcv.build("raft-small").eval(), root / f"w{seed}.safetensors")
    datasets.kitti(root / "data/KITTI", [0, 5, 7])
    datasets.sintel(root / "data/Sintel", {"alley_1": 3, "cave_2": 3})
    return root


def words(made, *more: str, weights: str = "w0") -> list[str]:
    start = ["eval", "--model", "raft-small", "--weights", str(made / f"{weights}.safetensors")]
    return [*start, "--data", str(made / "data"), "--iters", "1", "--device", "cpu", *more]


def read(path):
    return json.loads(path.read_text())


def test_the_published_networks_get_their_published_numbers(tmp_path, capsys):
    """RAFT on a KITTI pair (all pixels) and on RubberWhale, as RAFT's own code measures them."""
    weights, data = shared("weights"), shared("data")
    out = tmp_path / "result.json"
    command = ["eval", "--model", "raft-large", "--weights", str(weights / "raft-sintel.pth")]
    command += [f"kitti={weights / 'raft-kitti.pth'}", "--protocol", "raft", "--data"]
    command += [str(data / name) for name in ("middlebury", "kitti2015", "sintel")]
    command += ["--only", "kitti2015", "middlebury/RubberWhale", "-o", str(out)]
    assert main([*command, "--device", "cpu"]) == 0
    (result,) = read(out)["results"]
    kitti, middlebury = (result["datasets"][name] for name in ("kitti2015", "middlebury"))
    assert kitti["metrics"]["epe"] == pytest.approx(0.142, abs=0.002)
    assert kitti["settings"] == {"iters": 24, "pad": "kitti"}
    assert kitti["weights"]["published"] == "raft-kitti"
    assert middlebury["metrics"]["epe"] == pytest.approx(0.177, abs=0.002)
    assert middlebury["settings"] == {"iters": 20, "pad": "sintel"}
    assert middlebury["weights"]["published"] == "raft-sintel"
    shown = capsys.readouterr().out
    assert "kitti2015: 1 pair, protocol raft" in shown
    assert "raft-large, raft-kitti.pth" in shown


def test_two_processes_equal_one_to_the_bit(made, tmp_path):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as torchrun gives each of its processes
    try:
        assert main(words(made, "-o", str(one))) == 0
    finally:
        torch.set_num_threads(torch_threads)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--master-addr=127.0.0.1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"]
    command += ["-m", "lcv.cli.main", *words(made, "-o", str(two))]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("kitti2015: 3 pairs") == 1, "only the first process speaks"
    assert read(one)["results"] == read(two)["results"]
    names = read(two)["results"][0]["datasets"]
    assert [len(each["pairs"]) for each in names.values()] == [3, 4, 4]


def test_several_networks_and_their_difference(made, tmp_path, capsys):
    both, other = tmp_path / "both.json", tmp_path / "other.json"
    second = ["--model", "raft-small", "--weights", str(made / "w1.safetensors")]
    assert main(words(made, *second, "--only", "kitti2015", "-o", str(both))) == 0
    assert "raft-small, w1.safetensors" in capsys.readouterr().out
    first, second = read(both)["results"]
    assert first["label"] == "raft-small, w0.safetensors"
    assert first["datasets"]["kitti2015"]["metrics"] != second["datasets"]["kitti2015"]["metrics"]
    table = tmp_path / "table.json"
    assert main(["eval", "--compare", str(both), "-o", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "raft-small, w1.safetensors (B) against raft-small, w0.safetensors (A)" in shown
    for word in ("EPE, px", "Fl-all, %", "WAUC, %", "B − A", "95 % interval"):
        assert word in shown
    assert "*: fewer than 10 pairs" in shown
    (other_one,) = read(table)["others"]
    assert [row["metric"] for row in other_one["differences"]] == ["epe", "fl", "wauc"]
    assert all(row["pairs"] == 3 for row in other_one["differences"])
    assert main(words(made, "--only", "kitti2015", "--pad", "sintel", "-o", str(other))) == 0
    assert main(["eval", "--compare", str(both), str(other)]) == 2
    assert "their protocols differ in settings.kitti.pad ('kitti' and 'sintel')" in (
        capsys.readouterr().err
    )
    assert main(["eval", "--compare", str(other)]) == 2
    assert "there is 1 result" in capsys.readouterr().err


def test_explain_defines_every_metric_and_protocol(capsys):
    assert main(["eval", "--explain"]) == 0
    shown = capsys.readouterr().out
    for word in ("epe_unmatched", "WAUC", "s10-40", "torchvision:", "24 iterations, kitti padding"):
        assert word in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--protocol", "ptlflow"], "there is no protocol 'ptlflow'; there are raft, torchvision"),
        (["--pad", "zero"], "pad is 'zero', wanted one of sintel, kitti"),
        (["--only", "kity"], "no pair fits 'kity'; the datasets are kitti2015, sintel-clean"),
        (["--weights", "sintle=raft-small"], "sintle=raft-small fits no dataset"),
        (["--model", "raft-tiny", "--weights", "raft-small"], "unknown model 'raft-tiny'"),
        (["-o", "lost/result.json"], "the folder lost does not exist; make it first"),
        (["--device", "cuda:9"], "--device is 'cuda:9', wanted c"),
    ],
)
def test_mistakes_are_sentences_and_nothing_is_written(
    made, tmp_path, monkeypatch, capsys, more, message
):
    monkeypatch.chdir(tmp_path)
    assert main(words(made, "-o", "result.json", *more)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("lcv: ")
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing: --model; wanted --model M [--weights W] --data FOLDER"),
        (["--model", "raft-small"], "missing: --data"),
        (["--weights", "raft-small"], "missing: --data"),
        (["--model", "raft-small", "--data", "lost"], "lost: there is no such folder or list"),
        (["--compare", "lost.json"], "lost.json: cannot be read"),
    ],
)
def test_half_a_command_says_what_is_missing(arguments, message, capsys):
    assert main(["eval", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["eval", "submit"])
def test_help_takes_less_than_half_a_second(verb):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-m", "lcv.cli.main", verb, "--help"]
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5

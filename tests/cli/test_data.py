"""`lcv data`: exit codes, the verdict, JSON, help in an instant."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from lcv.cli import data
from lcv.cli import main as cli
from lcv.data.formats.image import read_image, write_image
from lcv.data.synthetic import sequence, textures
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake
from testing.shared import shared


def test_a_good_dataset_leaves_with_0(capsys):
    assert data.run(["check", str(shared("data", "chairs")), "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("FlyingChairs in ")
    assert captured.out.endswith("verdict: fine\n")
    assert captured.err == ""


def test_a_bad_dataset_leaves_with_1_and_says_why(tmp_path, capsys):
    fake.chairs(tmp_path, 2, corrupt=lambda flow: flow[..., ::-1].copy())
    assert data.run(["check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: wrong (1 found)"
    assert lines[-2].startswith(f"wrong: FlyingChairs data in {tmp_path}: the truth explains the")
    assert "u and v swapped" in lines[-2]


def test_json_is_all_there_is_on_stdout(tmp_path, capsys):
    fake.kitti(tmp_path, [0])
    (tmp_path / "training/image_2/000000_11.png").unlink()
    assert data.run(["check", str(tmp_path), "--json", "--pairs", "1"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "wrong"
    [problem] = report["problems"]
    assert problem["where"] == str(tmp_path / "training/image_2/000000_11.png")
    assert problem["reason"].startswith("missing")


def test_what_cannot_be_checked_is_an_error(tmp_path):
    with pytest.raises(FileError, match="no dataset is recognised in this folder"):
        data.run(["check", str(tmp_path)])


def test_the_bar_is_on_stderr_and_the_report_on_stdout(tmp_path, capsys, monkeypatch):
    fake.chairs(tmp_path, 1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert data.run(["check", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("FlyingChairs in ")
    assert "FlyingChairs: decoding" in captured.err


@pytest.fixture
def few_textures(monkeypatch):
    """The full bank takes seconds to paint."""
    bank = textures.procedural_bank(count=16, size=256)
    monkeypatch.setattr(sequence, "procedural_bank", lambda device: bank)


@pytest.mark.usefixtures("few_textures")
def test_make_writes_what_check_finds_fine(tmp_path, capsys):
    out = tmp_path / "made"
    words = ["make", str(out), "--recipe", "quick", "--count", "2", "--frames", "3"]
    words += ["--size", "64", "80", "--seed", "5"]
    assert data.run(words) == 0
    assert capsys.readouterr().out.startswith(f"wrote 4 pairs to {out}")
    assert read_image(out / "training/clean/scene_000001/frame_0003.png").shape == (64, 80, 3)
    assert data.run(["check", str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"procedural pairs in {out}\n  training/clean: 4 pairs (no known total)")
    with pytest.raises(FileError, match=r"frame_0001\.png: exists already"):
        data.run(words)
    before = (out / "training/flow/scene_000000/frame_0001.flo").read_bytes()
    assert data.run([*words, "--overwrite"]) == 0
    assert (out / "training/flow/scene_000000/frame_0001.flo").read_bytes() == before


@pytest.mark.usefixtures("few_textures")
def test_make_takes_textures_of_ones_own(tmp_path):
    for name in ("plain", "photos"):
        words = ["make", str(tmp_path / name), "--recipe", "mixed", "--count", "1"]
        words += ["--size", "32", "48"]
        if name == "photos":
            words += ["--textures", str(picture_folder(tmp_path / "pictures"))]
        assert data.run(words) == 0
    first = "training/clean/scene_000000/frame_0001.png"
    plain, photos = (read_image(tmp_path / name / first) for name in ("plain", "photos"))
    assert (plain != photos).any()


def picture_folder(folder):
    folder.mkdir()
    for seed in range(12):
        write_image(folder / f"{seed}.png", fake.Film(seed).frame(0))
    return folder


def test_an_unknown_recipe_lists_the_known_ones(tmp_path):
    with pytest.raises(
        ArgumentError, match="no recipe 'trainning'; there are training, pretraining"
    ):
        data.run(["make", str(tmp_path / "x"), "--recipe", "trainning"])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing: check | make"),
        (["chekc"], "there is no `lcv data chekc`, wanted check or make (did you mean check?)"),
        (["check"], "missing: dir (a dataset, "),
        (["check", "x", "--workers", "0"], "--workers is '0', wanted a whole number of 1 or more"),
        (["check", "x", "--pairs", "many"], "--pairs is 'many', wanted a whole number"),
        (["make"], "missing: out (the folder to write to)"),
        (["make", "x", "--frames", "1"], "--frames is '1', wanted a whole number of 2 or more"),
        (["make", "x", "--size", "8", "8"], "lcv: --size is 8×8, wanted at least 16×16"),
        (["make", "x", "--recipe", "no"], "lcv: --recipe: there is no recipe 'no'; there are"),
        (
            ["make", "x", "--size", "64"],
            "--size: too few values or too many, wanted 2: HEIGHT WIDTH",
        ),
    ],
)
def test_usage_errors_leave_with_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["data", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["make", "--help"]])
def test_help_takes_less_than_half_a_second(words):
    code = f"from lcv.cli.data import run; run({words!r})"
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
    assert done.stdout.startswith("usage: lcv data")

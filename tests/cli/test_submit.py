"""`lcv submit`: writes what it is asked for, checks what it is given, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lcv
from lcv.cli.main import main
from lcv.cli.submit import _parser, _told
from lcv.evaluate.submission_check import Fault
from lcv.evaluate.submit import Submission
from testing import datasets


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    torch.manual_seed(0)
    lcv.save(lcv.build("raft-small").eval(), root / "w.safetensors")
    datasets.sintel(root / "Sintel", {}, test={"wall": 3})
    datasets.kitti(root / "KITTI", [], testing=[0])
    return root


def words(made, kind: str, out, *more: str) -> list[str]:
    home = {"sintel": "Sintel", "kitti": "KITTI"}[kind]
    command = ["submit", kind, "--model", "raft-small", "--weights", str(made / "w.safetensors")]
    command += ["--data", str(made / home), "-o", str(out), "--iters", "1", "--device", "cpu"]
    return [*command, *more]


@pytest.mark.parametrize(
    ("kind", "files", "how"),
    [("sintel", "4 files", "with warm start"), ("kitti", "1 file", "every pair from zero flow")],
)
def test_a_trial_is_written_and_passes_the_check(made, tmp_path, capsys, kind, files, how):
    out = tmp_path / "mine"
    assert main(words(made, kind, out, "--partial")) == 0
    said = capsys.readouterr().out
    assert f"{out} and {out}.zip: {files}, {how}; checked, no fault found" in said
    assert "for trial only: no server accepts it" in said
    home = str(made / ("Sintel" if kind == "sintel" else "KITTI"))
    check = ["submit", "check", f"{out}.zip", "--kind", kind]
    assert main([*check, "--data", home, "--partial"]) == 0
    assert capsys.readouterr().out == f"{out}.zip: no fault found\n"
    assert main(check) == 1
    said = capsys.readouterr().out
    assert "wanted 12" in said or "missing; wanted 200 files" in said
    assert "faults found" in said


def test_what_is_refused_is_a_sentence(made, tmp_path, capsys):
    out = tmp_path / "mine"
    cases = [
        (words(made, "sintel", out), "not the whole test set: clean/ has 1 scenes, wanted 12"),
        (words(made, "kitti", out, "--partial", "--iters", "0"), "--iters is '0'"),
        (words(made, "kitti", made / "w.safetensors", "--partial"), "exists already"),
        (["submit", "kitti", "--data", str(made)], "missing: -o/--output"),
        (["submit", "check", str(out), "--kind", "sintel"], "no such folder or archive"),
        (
            ["submit", "check", str(tmp_path), "--kind", "spring"],
            "--kind is 'spring', wanted sintel or kitti",
        ),
    ]
    for command, message in cases:
        assert main(command) == 2
        assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_many_processes_are_refused(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(words(made, "kitti", tmp_path / "a", "--partial")) == 2
    assert "works in one process; call it without torchrun" in capsys.readouterr().err


def test_without_warm_start(made, tmp_path, capsys):
    assert main(words(made, "sintel", tmp_path / "a", "--partial", "--no-warm-start")) == 0
    assert "every pair from zero flow" in capsys.readouterr().out


def test_what_many_files_share_is_told_of_five_and_counted(tmp_path, capsys):
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "letter.txt").write_text("dear")
    assert main(["submit", "check", str(tmp_path / "wrong"), "--kind", "kitti"]) == 1
    said = capsys.readouterr().out.splitlines()
    lost = [line for line in said if line.endswith(".png: missing; wanted 200 files")]
    assert [line.split(":")[0] for line in lost] == [f"flow/00000{i}_10.png" for i in range(5)]
    assert "… and 195 more files: missing; wanted 200 files" in said
    assert any(line.startswith("letter.txt: ") for line in said)
    assert said[-1] == f"{tmp_path / 'wrong'}: 201 faults found"
    assert len(said) == 8


@pytest.mark.parametrize(("count", "told", "more"), [(5, 5, 0), (6, 6, 0), (7, 5, 2), (9, 5, 4)])
def test_of_faults_that_say_the_same_the_first_five_are_told(count, told, more):
    """One more is told too, since a line that hides it would be no shorter."""
    faults = [Fault(f"{n}.flo", "missing") for n in range(count)]
    lines = [f"{n}.flo: missing" for n in range(told)]
    lines += [f"… and {more} more files: missing"] * bool(more)
    assert [*_told([*faults, Fault("x", "odd")])] == [*lines, "x: odd"]


def test_what_is_not_said_of_a_submission():
    for kind in ("sintel", "kitti"):
        chosen = _parser().parse_args([kind, "--data", "d", "-o", "o"])
        assert (chosen.kind, chosen.warm_start, chosen.iters) == (kind, None, None)
        assert not any((chosen.clip, chosen.partial, chosen.overwrite))
    assert (
        _parser().parse_args(["sintel", "--data", "d", "-o", "o", "--no-warm-start"]).warm_start
        is False
    )
    assert not _parser().parse_args(["check", "d", "--kind", "sintel"]).partial


@pytest.mark.parametrize(
    ("kind", "more", "clipped", "lines"),
    [
        ("sintel", [], 0, ["Sintel's server wants what its own bundler makes of the folder o"]),
        ("sintel", ["--partial"], 0, ["this is part of the test set, for trial only: no server accep"
                                      "ts it"]),
        ("kitti", [], 0, []),
        ("kitti", ["--clip"], 1, ["clipped 1 pixel that would be out of range"]),
        ("kitti", ["--clip"], 1234, ["clipped 1,234 pixels that would be out of range"]),
    ],
)  # fmt: skip
def test_what_is_said_of_a_submission(kind, more, clipped, lines, monkeypatch, capsys):
    def write_submission(*words, **options):
        assert words == (kind, "a network", "d", "o")
        assert (options["clip"], options["partial"]) == ("--clip" in more, "--partial" in more)
        return Submission(Path("o"), Path("o.zip"), 2, clipped, kind == "sintel")

    monkeypatch.setattr("lcv.evaluate.submit.write_submission", write_submission)
    monkeypatch.setattr("lcv.models.build.load", lambda *words: "a network")
    words = ["submit", kind, "--model", "raft-small", "--data", "d", "-o", "o", "--device", "cpu"]
    assert main([*words, *more]) == 0
    how = "with warm start" if kind == "sintel" else "every pair from zero flow"
    first = f"o and o.zip: 2 files, {how}; checked, no fault found"
    assert capsys.readouterr().out.splitlines() == [first, *lines]

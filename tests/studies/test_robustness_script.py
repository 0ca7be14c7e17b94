"""What benchmarks/robustness.sh asks of `lcv`, seen by one that only writes down what it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lcv.cli import data, robust, robust_learn
from testing.extras import programs

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "robustness.sh"
STUB = """
import json, sys
from pathlib import Path
log, *words = sys.argv[1:]
with open(log, "a") as file:
    file.write(json.dumps(words) + chr(10))
if words[0] == "data":
    Path(words[2]).mkdir(parents=True, exist_ok=True)
elif words[1] == "learn":
    Path(words[words.index("-o") + 1]).write_text("a patch")
else:
    out = Path(words[words.index("-o") + 1])
    (out / "robustness.md").write_text("# R" + chr(10) + "## Harm of " + out.name + chr(10))
"""


@pytest.fixture
def script(tmp_path):
    """Runs it on two test pairs; gives what it printed and what `lcv` was asked, in order."""
    (bash,) = programs("bash")
    (tmp_path / "stub.py").write_text(STUB)
    log = tmp_path / "log"
    for name in ("w.pth", "real.txt", "d.safetensors"):
        (tmp_path / name).touch()

    def call(inputs=("w.pth", "real.txt"), check=True, **variables):
        log.unlink(missing_ok=True)
        settings = {"LCV": f"{sys.executable} {tmp_path / 'stub.py'} {log}", "DEVICE": "cpu"}
        settings |= {"PAIRS_OF_TEST": "2", **variables}
        words = [bash, SCRIPT, *inputs, tmp_path / "out"]
        done = subprocess.run(
            words,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=check,
            cwd=tmp_path,
        )
        if not check:
            return done.returncode, done.stderr, log.exists()
        return done.stdout, [json.loads(line) for line in log.read_text().splitlines()]

    return call


def measured(asked):
    """By folder, what each measurement was asked, as `lcv robust` itself reads it."""
    parsed = [robust._parser().parse_args(w[1:]) for w in asked if w[:2] != ["robust", "learn"]]
    return {Path(each.output).name: each for each in parsed}


def test_it_learns_and_measures_what_the_documentation_says(script, tmp_path):
    printed, asked = script(MORE="ddflow=d.safetensors")
    assert "Harm of test\n## Harm of benchmark" in printed
    learned = [robust_learn._parser().parse_args(w[2:]) for w in asked if w[1] == "learn"]
    assert {Path(each.output).stem for each in learned} == {"published", "lcv", "vanilla", "ddflow"}
    assert {(e.steps, e.recipe, e.start) for e in learned} == {(1500, "moderate", "checks")}

    (made,) = (data._parser().parse_args(w[1:]) for w in asked if w[0] == "data")
    assert (made.recipe, made.seed, made.count) == ("moderate", 77, 2)
    lines = (tmp_path / "out" / "moderate" / "pairs.txt").read_text().splitlines()
    assert lines == [
        f"training/final/scene_00000{i}/frame_0001.png training/final/scene_00000{i}/frame_0002.png "
        f"training/flow/scene_00000{i}/frame_0001.flo"
        for i in range(2)
    ]

    found = measured([words for words in asked if words[0] == "robust"])
    assert set(found) == {"test", "benchmark", "real"}
    patches = {name: [Path(p).stem for p in each.patch] for name, each in found.items()}
    assert patches.pop("test") == ["published", "lcv", "vanilla", "ddflow"]
    assert set(map(tuple, patches.values())) == {("lcv",)}
    three = [("raft-small", "w.pth"), ("raft-small", None), ("raft-small-vanilla", None)]
    assert found["benchmark"].models == found["real"].models == three
    assert found["test"].models == [*three, ("ddflow", "d.safetensors")]
    assert found["test"].data == [f"moderate={tmp_path / 'out' / 'moderate' / 'pairs.txt'}"]
    assert (found["benchmark"].data, found["benchmark"].limit) == (["benchmark"], 200)
    assert found["real"].data == ["real=real.txt"]
    assert found["test"].stress == ["patch", "random", "matched"]


def test_pairs_that_are_there_are_not_made_again_unless_their_number_changes(script):
    assert any(words[0] == "data" for words in script()[1])
    again = script(MEASURES_ONLY="1")[1]
    assert {words[0] for words in again} == {"robust"}
    assert not any(words[1] == "learn" for words in again)
    assert any(words[0] == "data" for words in script(MEASURES_ONLY="1", PAIRS_OF_TEST="3")[1])


def test_patches_alone(script):
    assert all(words[:2] == ["robust", "learn"] for words in script(PATCHES_ONLY="1")[1])


@pytest.mark.parametrize(
    ("inputs", "more", "lost"),
    [
        (("nope.pth", "real.txt"), "", "nope.pth"),
        (("w.pth", "gone.txt"), "", "gone.txt"),
        (("w.pth", "real.txt"), "ddflow=d.safetensors vcn=gone.pth", "gone.pth"),
    ],
)
def test_an_input_that_is_not_there_is_named_at_once(script, tmp_path, inputs, more, lost):
    code, said, was_asked = script(inputs, check=False, MORE=more)
    assert code == 2
    assert f"{lost}: there is no such file or folder\n" in said
    assert not was_asked
    assert not (tmp_path / "out").exists()

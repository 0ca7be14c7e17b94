"""docs/add-a-model.md works from top to bottom: its code is written, its commands are run in order."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from lcv.cli.main import main

GUIDE = Path(__file__).parents[1] / "docs" / "add-a-model.md"
# A minute of training and an ablation of minutes are cut short; nothing else is changed.
SHORTER = {
    "train": ["--steps=20", "--validate_every=0", "--save_every=20"],
    "ablate": ["--steps", "2", "--pairs", "2", "--seeds", "0", "--validate-every", "2"],
    "robust": ["--limit", "2", "--levels", "gamma=0.5,1"],
    "bench": ["--repeats", "1"],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_guide_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("lcv.train.validate.PAIRS", 2)
    network, in_python = blocks("python")
    Path("my_flow.py").write_text(network, encoding="utf-8")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    verbs = [shlex.split(line)[1] for line in commands]
    assert {"train", "inspect", "eval", "predict", "robust", "bench", "ablate", "export"} < {*verbs}
    for line in commands:
        program, verb, *rest = shlex.split(line)
        if program == "python":
            done = subprocess.run([sys.executable, verb, *rest], check=False, cwd=tmp_path)
            assert done.returncode == 0, line
            continue
        assert program == "lcv"
        assert main([verb, *rest, *SHORTER.get(verb, [])]) == 0, capsys.readouterr().err
    study = json.loads(Path("runs/ablation/study.json").read_text())
    columns = ["original", "continued", "diagonal", "rotation", "gram", "lcv"]
    assert study["columns"] == columns
    assert study["null_controls"] == []  # its head sees the features that P turns
    (result,) = json.loads(Path("runs/mine/eval.json").read_text())["results"]
    source = hashlib.sha256(Path("my_flow.py").read_bytes()).hexdigest()
    for measured in result["datasets"].values():
        assert measured["model"]["name"] == "my_flow.py:net"
        assert measured["model"]["source"] == source
    exec(compile(in_python, str(GUIDE), "exec"), {"__name__": "guide"})
    assert Path("runs/mine/my_flow.onnx").stat().st_size > 10_000

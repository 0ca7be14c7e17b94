"""Two processes equal one, stop and fail together; a killed one is restarted from its checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lcv.train import LossConfig, ModelConfig, OptimConfig, run
from lcv.train.checkpoint import read
from lcv.train.log import read_log
from lcv.train.network import make_model
from lcv.train.validate import AT_ONCE

SCRIPT = Path(__file__).with_name("processes.py")


def two_processes(config, tmp_path, *options: str, script: tuple[str, ...] = ()) -> str:
    """Train under torchrun; what came on the error stream if all went well."""
    done = started(config, tmp_path, *options, script=script)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def started(config, tmp_path, *options: str, script: tuple[str, ...] = ()):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.as_dict()))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--master-addr=127.0.0.1", "--master-port=0", "--rdzv-backend=c10d"]
    command += ["--rdzv-endpoint=127.0.0.1:0", *options, str(SCRIPT), str(path), *script]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def weights(config) -> dict[str, torch.Tensor]:
    return read(Path(config.folder) / "checkpoints" / "last.pt")["model"]


@pytest.mark.parametrize("name", ["raft-small", pytest.param("ddflow", marks=pytest.mark.slow)])
def test_two_processes_equal_one_in_float64_after_20_steps(tiny, tmp_path, name):
    config = tiny(
        model=ModelConfig(name, freeze_batch_norm=True),
        loss=LossConfig(iters=2 if name == "raft-small" else None),
        steps=20,
        batch=2,
        precision="float64",
        ema=0.9,
        save_every=20,
        log_every=20,
    )
    for until in (1, None):
        run(replace(config, folder=str(tmp_path / "one")), "auto", device="cpu", until=until)
    said = two_processes(config, tmp_path, script=("--twice",))
    assert "FutureWarning" not in said
    alone, both = (read(tmp_path / name / "checkpoints" / "last.pt") for name in ("one", "run"))
    for state in ("model", "average"):
        for key, value in both[state].items():
            torch.testing.assert_close(value, alone[state][key], atol=1e-9, rtol=1e-9, msg=key)
    # What is shown is of all processes' pairs.
    alone, together = (read_log(tmp_path / name / "log.jsonl")[-1] for name in ("one", "run"))
    for key in ("loss", "epe"):
        assert together[key] == pytest.approx(alone[key], rel=1e-9)


def test_two_processes_equal_one_in_float32_after_one_sgd_step(tiny, tmp_path, monkeypatch):
    """SGD, since AdamW's first step is ± the rate, whatever rounding has left of a gradient."""
    config = tiny(
        model=ModelConfig("raft-large", freeze_batch_norm=True),
        optim=OptimConfig(optimiser="sgd", lr=0.1, schedule="constant"),
        loss=LossConfig(iters=2),
        steps=1,
        batch=4,
        validate_every=1,
        validate_iters=1,
        validation={"procedural": "procedural"},
    )
    pairs = AT_ONCE + 2  # a share each, of different sizes
    monkeypatch.setattr("lcv.train.validate.PAIRS", pairs)
    one = run(replace(config, folder=str(tmp_path / "one")), device="cpu").state_dict()
    two_processes(config, tmp_path, script=("--pairs", str(pairs)))
    torch.manual_seed(config.seed)
    start = make_model(config)[0].state_dict()
    moved = 0.0
    for key, value in weights(config).items():
        torch.testing.assert_close(value, one[key], atol=1e-5, rtol=0, msg=key)
        moved = max(moved, float((value - start[key]).abs().max()))
    assert moved > 1e-3, "a step this small could not tell"
    # Each process validates on half of the pairs; the numbers are those of all of them.
    alone, together = (read_log(tmp_path / name / "log.jsonl")[-1] for name in ("one", "run"))
    assert together["kind"] == "validation"
    assert together["procedural/zero_flow_epe"] == pytest.approx(
        alone["procedural/zero_flow_epe"], rel=1e-12
    )
    assert together["procedural/epe"] == pytest.approx(alone["procedural/epe"], abs=1e-3)


def test_a_killed_process_is_restarted_and_the_job_goes_on_from_its_checkpoint(tiny, tmp_path):
    config = tiny(steps=8, save_every=2, log_every=8, precision="float64")
    one = run(replace(config, folder=str(tmp_path / "one")), device="cpu").state_dict()
    died = tmp_path / "died"
    two_processes(config, tmp_path, "--max-restarts=1", script=("--die", str(died)))
    assert died.exists(), "nobody was killed"
    for key, value in weights(config).items():
        torch.testing.assert_close(value, one[key], atol=1e-9, rtol=1e-9, msg=key)


def test_a_process_told_to_stop_stops_all_after_the_same_step(tiny, tmp_path):
    config = tiny(steps=1000, save_every=1000)
    two_processes(config, tmp_path, script=("--stop", "3"))
    assert read(Path(config.folder) / "checkpoints" / "last.pt")["step"] == 4


def test_the_sample_that_fails_is_named_whichever_process_had_it(tiny, tmp_path):
    done = started(tiny(), tmp_path, script=("--poison", "5"))
    assert done.returncode != 0
    assert "threads outlive" not in done.stderr
    failure = read_log(tmp_path / "run" / "log.jsonl")[-1]
    said = {"kind": "failure", "step": 2, "samples": ["procedural:quick:0:5"]}
    assert said.items() <= failure.items()
    assert done.stderr.count("Samples: procedural:quick:0:5. The weights") == 2

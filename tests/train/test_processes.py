"""Two processes equal one; a killed one is restarted and the job goes on from its checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lcv.train import LossConfig, ModelConfig, run
from lcv.train.checkpoint import read

SCRIPT = Path(__file__).with_name("processes.py")


def two_processes(config, tmp_path, *options: str, script: tuple[str, ...] = ()) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.as_dict()))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--master-addr=127.0.0.1", "--master-port=0", "--rdzv-backend=c10d"]
    command += ["--rdzv-endpoint=127.0.0.1:0", *options, str(SCRIPT), str(path), *script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


def weights(config) -> dict[str, torch.Tensor]:
    return read(Path(config.folder) / "checkpoints" / "last.pt")["model"]


@pytest.mark.parametrize("name", ["raft-small", "ddflow"])
def test_two_processes_equal_one_in_float64_after_20_steps(tiny, tmp_path, name):
    config = tiny(
        model=ModelConfig(name, freeze_batch_norm=True),
        loss=LossConfig(iters=2 if name == "raft-small" else None),
        steps=20,
        batch=2,
        precision="float64",
        save_every=20,
        log_every=20,
    )
    one = run(replace(config, folder=str(tmp_path / "one")), device="cpu").state_dict()
    two_processes(config, tmp_path)
    for key, value in weights(config).items():
        torch.testing.assert_close(value, one[key], atol=1e-9, rtol=1e-9, msg=key)


def test_a_killed_process_is_restarted_and_the_job_goes_on_from_its_checkpoint(tiny, tmp_path):
    config = tiny(steps=16, save_every=4, log_every=16, precision="float64")
    one = run(replace(config, folder=str(tmp_path / "one")), device="cpu").state_dict()
    died = tmp_path / "died"
    two_processes(config, tmp_path, "--max-restarts=1", script=("--die", str(died)))
    assert died.exists(), "nobody was killed"
    for key, value in weights(config).items():
        torch.testing.assert_close(value, one[key], atol=1e-9, rtol=1e-9, msg=key)

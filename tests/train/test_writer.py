"""One run writes a folder at a time, and what holds it is gone with its process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from lcv.errors import ArgumentError, FileError
from lcv.train import run
from lcv.train.distributed import Processes
from lcv.train.together import run_together
from lcv.train.writer import writer

ALONE = Processes(0, 1, torch.device("cpu"))
HOLD = """
import sys, time, torch
from lcv.train.distributed import Processes
from lcv.train.writer import writer
with writer(sys.argv[1], Processes(0, 1, torch.device("cpu"))):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_refused_until_the_first_is_killed(tiny, tmp_path):
    config = tiny(steps=1)
    command = [sys.executable, "-c", HOLD, config.folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            message = "run: another run is writing here; wait for it, or choose another --folder"
            with pytest.raises(FileError, match=message):
                run(config, resume="auto", device="cpu")
            (ended,) = run_together([config], device="cpu")
            assert "another run is writing here" in str(ended.error)
        finally:
            process.kill()
    assert (tmp_path / "run" / "run.lock").exists(), "it was not killed in the middle"
    run(config, resume="auto", device="cpu")
    assert not (tmp_path / "run" / "run.lock").exists()


def test_only_the_first_process_of_a_job_holds_it(tmp_path):
    class Second(Processes):
        def any(self, here: bool) -> bool:
            return here

    with writer(str(tmp_path / "run"), ALONE):
        with writer(str(tmp_path / "run"), Second(1, 2, torch.device("cpu"))):
            pass
        with pytest.raises(FileError), writer(str(tmp_path / "run"), ALONE):
            pass


def test_the_others_of_a_job_leave_with_the_first(tmp_path):
    class Told(Processes):
        def any(self, here: bool) -> bool:
            return True

    with (
        pytest.raises(FileError, match="another run is writing here"),
        writer(str(tmp_path / "run"), Told(1, 2, torch.device("cpu"))),
    ):
        pass


def test_a_run_that_cannot_begin_leaves_nothing(tiny, tmp_path):
    config = tiny(folder=str(tmp_path / "some" / "where"))
    for change, message in (
        (
            {"graph": True},
            "graph is True, which needs CUDA, and the device is cpu; use graph=False",
        ),
        ({"data": replace(config.data, textures=str(tmp_path / "no"))}, "data.textures is .*/no'"),
        (
            {"validate_every": 1, "validation": {"p": "procedural"}, "best": "q/epe"},
            "best is 'q/epe', wanted a number .* less is better: p/epe, p/epe_image, p/fl",
        ),
        (
            {"validate_every": 1, "validation": {"p": "procedural"}, "best": "p/px1"},
            "best is 'p/px1'",
        ),
    ):
        with pytest.raises((ArgumentError, FileError), match=message):
            run(replace(config, **change), device="cpu")
        assert not (tmp_path / "some").exists()
    with pytest.raises(ArgumentError, match="graph is True, which needs CUDA"):
        run_together([replace(config, graph=True)], device="cpu")

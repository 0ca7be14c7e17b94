"""Jobs of `lcv predict` on small footage, run in this process."""

from __future__ import annotations

from pathlib import Path

import torch

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.predict import Predictor
from lcv.predict.job import Job, Summary
from lcv.predict.outputs import wanted_outputs
from lcv.predict.run import Run
from lcv.predict.selection import Selection, Shard
from testing.footage import files_of, moving

PLAIN = {"outputs": wanted_outputs(("flo", "png"))}
FLOW = wanted_outputs(("flo",))
ONE, TWO = Shard(1, 2), Shard(2, 2)


class Killed(BaseException):
    """What no handler of the job's expects."""


def quick_predictor() -> Predictor:
    """Random weights, always the same, and one iteration."""
    torch.manual_seed(7)
    return Predictor(lcv.build("raft-small"), iters=1, device="cpu")


def run(predictor: Predictor, source, root, frames=None, every=1, **settings) -> Summary:
    """A job over what `source` names, a path or several, to its end."""
    chosen = Selection(frames=frames, every=every)
    words = [str(each) for each in (source if isinstance(source, list) else [source])]
    job = Job(
        find_inputs(words).sequences, Path(root), **{**PLAIN, **settings, "selection": chosen}
    )
    return Run(predictor, job).go()


def made(root: Path) -> dict[str, bytes]:
    """All files of a job but its log, which says who made them and when."""
    return {name: content for name, content in files_of(root).items() if "done" not in name}


def change(frame: Path, seed: int = 5) -> None:
    """Another picture of the same size and name."""
    height, width = lcv.read_image(frame).shape[:2]
    write_image(frame, moving(1, (height, width), seed)[0], overwrite=True)

"""A run of several stages, each from the half-precision weights of the one before.

Nothing but the weights passes from stage to stage, and moments and average begin anew; so stages can
run on different machines and come to the same. A stage that was stopped can go on elsewhere in the
same way, from its stopped.safetensors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from lcv.errors import ArgumentError, FileError
from lcv.models.build import find
from lcv.models.cards import card_from
from lcv.train.checkpoint import Folder
from lcv.train.config import Stages, TrainConfig
from lcv.train.log import Listener
from lcv.train.loop import run
from lcv.train.together import run_together

RESULT = "weights.safetensors"


def run_stages(
    stages: Stages,
    resume: str | None = None,
    device: str | None = None,
    listeners: tuple[Listener, ...] = (),
    **choice: Any,
) -> nn.Module | None:
    """Train the stages that are left; returns the last one's model, None if nothing was left.

    choice: start, only and minutes, as in `stages_left`
    """
    model = None
    for config, minutes in stages_left(stages, resume, **choice):
        model = run(config, resume, device, listeners, minutes=minutes)
    return model


def run_stages_together(
    networks: Sequence[Stages],
    device: str | None = None,
    starts: Sequence[str] = (),
    only: str | None = None,
    minutes: float | None = None,
) -> None:
    """Several networks through the same stages on the same batches, side by side in one process.

    Each goes on from its own folder, or from its file of `starts`; else as `run_stages`.
    """
    deadline = _deadline(minutes)
    own: Sequence[str | None] = starts or [None] * len(networks)
    plans = [plan(stages, start, only) for stages, start in zip(networks, own, strict=True)]
    for configs in zip(*plans, strict=True):
        if not all(is_done(config) for config in configs):
            ended = run_together(configs, device, stop=lambda: time.monotonic() > deadline)
            for error in (end.error for end in ended if end.error is not None):
                raise error
        if not all(is_done(config) for config in configs):
            return


def stages_left(
    stages: Stages,
    resume: str | None = None,
    start: str | None = None,
    only: str | None = None,
    minutes: float | None = None,
) -> Iterator[tuple[TrainConfig, float | None]]:
    """The runs to make, in order, and how many minutes are left for each; ends with one that stops.

    resume:  "auto" leaves out stages that are done and goes on with the next; None: all are new
    minutes: for all of them together; start, only: as in `plan`
    """
    deadline = _deadline(minutes)
    configs = plan(stages, start, only)
    if resume not in (None, "auto") and len(configs) > 1:
        raise ArgumentError(f"resume is {resume!r}, which is of one stage; say which one (--stage)")
    for config in configs if resume is None else ():
        check_new(config.folder)
    for config in configs:
        if resume == "auto" and is_done(config) and len(configs) > 1:
            continue
        yield config, None if minutes is None else (deadline - time.monotonic()) / 60
        if not is_done(config):
            return


def plan(stages: Stages, start: str | None = None, only: str | None = None) -> list[TrainConfig]:
    """What each stage is configured as: its own folder below the run's, and where it begins.

    start: weights to go on with, of a stage that is done or was stopped: their card tells which one
           and how far. By default each begins with what the one before wrote into its folder.
    only:  run this stage alone
    """
    if only is not None and only not in stages:
        raise ArgumentError(f"there is no stage {only!r}, wanted one of {', '.join(stages)}")
    configs, before = {}, None
    for name, config in stages.items():
        if len(stages) > 1:
            config = replace(config, name=name, half=True, folder=f"{config.folder}/{name}")
        if before is not None:
            config = _from(config, f"{before}/{RESULT}")
        configs[name], before = config, config.folder
    first, step = (only or next(iter(stages)), 0) if start is None else _where(start, stages, only)
    if start is not None:
        if Path(start).resolve().parent == Path(configs[first].folder).resolve():
            raise ArgumentError(
                f"{start}: lies in the folder of stage {first or 'this run'}, where it would be "
                f"overwritten; go on with --resume auto, or put it elsewhere"
            )
        configs[first] = replace(_from(configs[first], start), first_step=step)
    weights = configs[first].model.weights
    if start is None and first != next(iter(stages)) and not Path(weights or "").exists():
        raise FileError(
            f"stage {first} begins with {weights}, and there is no such file; run the stage before, "
            f"or give its weights (--start FILE)"
        )
    names = list(stages)
    return [configs[name] for name in names[names.index(first) :] if only in (None, name)]


def check_new(folder: str) -> None:
    """Refuse a folder with a run."""
    if Folder(folder).path("last").exists():
        raise ArgumentError(
            f"{folder}: holds a run already; resume it (--resume auto) or choose another --folder"
        )


def is_done(config: TrainConfig) -> bool:
    """Whether the run of this folder has come to its end."""
    return (Path(config.folder) / RESULT).exists()


def _where(start: str, stages: Stages, only: str | None) -> tuple[str, int]:
    """The stage that weights are for, and the steps of it that they have had."""
    said = card_from(find(start), []).progress or {}
    names, step = list(stages), said.get("step")
    if said.get("stage") not in names or not isinstance(step, int):
        if only is not None:
            return only, 0
        raise ArgumentError(
            f"{start}: its card does not tell how far it was in this recipe; to begin with it, say "
            f"--model.weights FILE, or --start FILE and --stage STAGE"
        )
    name = said["stage"]
    if step >= said.get("steps", stages[name].steps):
        if name == names[-1]:
            raise ArgumentError(f"{start}: its run is done, so that no stage is left")
        name, step = names[names.index(name) + 1], 0
    return (name, step) if only in (None, name) else (only, 0)


def _from(config: TrainConfig, weights: str) -> TrainConfig:
    return replace(config, model=replace(config.model, weights=weights))


def _deadline(minutes: float | None) -> float:
    return math.inf if minutes is None else time.monotonic() + 60 * minutes

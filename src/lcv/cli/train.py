"""`lcv train`: a recipe, settings of it changed by dotted name, and a run that can be resumed."""

from __future__ import annotations

import argparse
import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lcv.cli.parser import device_name
from lcv.cli.train_parser import HELP, make_parser, parse
from lcv.errors import ArgumentError, FileError
from lcv.models.find import check_weights
from lcv.models.named import check_name
from lcv.recipes import config_from, load_stages, recipe_names
from lcv.train.config import Stages, TrainConfig

OWN = ("recipe", "resume", "stage", "start", "minutes", "device", "tensorboard")
PRINT = "--print_config"
INTERRUPTED = 130


def run(arguments: list[str]) -> int:
    """Exit codes: 0 all steps are done, 130 interrupted and saved, 2 an error."""
    if not arguments or arguments[0] in ("-h", "--help"):
        make_parser(TrainConfig()).print_help()
        return 0
    if arguments[0] == "finetune":
        from lcv.cli.finetune import run as finetune

        return finetune(arguments[1:])
    if arguments[0].startswith("-"):
        raise ArgumentError(
            f"the first word is {arguments[0]!r}, wanted a recipe: "
            f"{', '.join(recipe_names())}, or a file"
        )
    recipe = load_stages(arguments[0])
    if "-h" in arguments or "--help" in arguments:
        make_parser(next(iter(recipe.values()))).print_help()
        return 0
    words = [word for word in arguments if word != PRINT]
    stages: Stages = {}
    for name, base in recipe.items():
        chosen = parse(make_parser(base), words)
        stages[name] = config_from({k: v for k, v in chosen.items() if k not in OWN})
    if PRINT in arguments:
        said = {name: config.as_dict() for name, config in stages.items()}
        print(json.dumps({"stages": said} if len(said) > 1 else said[name], indent=2))
        return 0
    first = next(iter(stages.values()))
    check_name(first.model.name)
    if chosen["start"] is None:
        check_start(first)
        if chosen["resume"] is None and first.model.weights is not None:
            check_weights(first.model.weights)

    from lcv.train.stages import stages_left

    where = {"start": chosen["start"], "only": chosen["stage"], "minutes": chosen["minutes"]}
    code, device = None, device_of(chosen["device"])
    for config, minutes in stages_left(stages, chosen["resume"], **where):
        code = train(config, chosen["resume"], device, chosen["tensorboard"], minutes)
        if code:
            break
    if code is None and _is_first():
        print("all stages are done")
    return code or 0


def check_start(config: TrainConfig) -> None:
    """Of weights of a stage before that are not there, say which recipe makes them."""
    for name, weights in (
        ("--model.weights", config.model.weights),
        ("--loss.teacher", config.loss.teacher),
    ):
        made = re.fullmatch(r"runs/(\w+)/weights\.safetensors", weights or "")
        if made and made[1] in recipe_names() and not Path(made[0]).exists():
            raise FileError(
                f"{name} is {made[0]!r}, and there is no such file; `lcv train {made[1]}` makes it, "
                f"or give another one: {name} FILE"
            )


def _is_first() -> bool:
    """Whether this is the process that speaks, of those that torchrun started, or alone."""
    return os.environ.get("RANK", "0") == "0"


def train(
    config: TrainConfig,
    resume: str | None,
    device: str | None,
    tensorboard: bool,
    minutes: float | None = None,
) -> int:
    """The run itself, shown on the terminal by the first process."""
    from lcv.train.checkpoint import Folder
    from lcv.train.console import Terminal
    from lcv.train.curve import leave_curve
    from lcv.train.loop import run as run_training

    first = _is_first()
    listeners: list[Any] = []
    with ExitStack() as stack:
        if first and tensorboard:
            from lcv.train.board import Board

            board = Board(config.folder)
            stack.callback(board.close)
            listeners.append(board)
        if first:
            listeners.append(stack.enter_context(Terminal(config)))
        try:
            run_training(config, resume, device, tuple(listeners), minutes=minutes)
        except KeyboardInterrupt:
            newest = Folder(config.folder).newest()
            if newest is None or newest[1]["step"] < config.steps:
                raise
            print(f"interrupted; all {config.steps} steps of {config.folder} are done and saved")
            return INTERRUPTED
    if not first:
        return 0  # the first process may still be writing what is looked at below
    newest = Folder(config.folder).newest()
    step = 0 if newest is None else newest[1]["step"]
    if step < config.steps:
        print(
            f"stopped after step {step} of {config.steps} and saved; the same command with "
            f"--resume auto goes on, or elsewhere with --start "
            f"{Path(config.folder) / 'stopped.safetensors'}"
        )
        return INTERRUPTED
    for line in leave_curve(config):
        print(line)
    steps = f"{config.steps} step{'s' * (config.steps != 1)}"
    print(f"{steps} done: {Path(config.folder) / 'weights.safetensors'}")
    return 0


def device_of(asked: str | None) -> str | None:
    try:
        return None if asked is None else device_name(asked)
    except argparse.ArgumentTypeError as error:
        raise ArgumentError(f"--device {error}; {HELP}") from None

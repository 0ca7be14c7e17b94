"""`lcv train finetune`: on one's own pairs, from any weights, with the error before and after."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from lcv.cli import train, train_parser
from lcv.errors import ArgumentError, FileError
from lcv.models.named import check_named
from lcv.recipes import config_from
from lcv.train.config import TrainConfig
from lcv.words import counted

if TYPE_CHECKING:
    from lcv.train.finetune import Plan

USAGE = (
    "lcv train finetune --pairs LIST|FOLDER --weights FILE [--folder FOLDER] [--SETTING VALUE …]"
)
FEW = 5
"""Fewer held-out pairs than this prove little."""


def run(arguments: list[str]) -> int:
    """Exit codes as of `lcv train`."""
    if {"-h", "--help"} & set(arguments):
        _parser(TrainConfig()).print_help()
        return 0
    first = _first_look(arguments)
    for option in ("pairs", "weights"):
        if getattr(first, option) is None:
            raise ArgumentError(f"--{option} is missing: {USAGE}")
    check_named(first.model, first.weights)
    if not Path(first.pairs).exists():
        raise FileError(
            f"{first.pairs}: there is no such file; wanted a text file with `image1 image2 flow` on "
            f"each line, or the folder of a dataset"
        )

    # What can be found wrong without torch, which takes seconds to import, has been.
    import torch

    from lcv.data.formats.image import write_image
    from lcv.train.finetune import Plan, judge, make_plan
    from lcv.train.pictures import before_after_picture
    from lcv.train.stages import check_new

    device = train.device_of(first.device) or ("cuda" if torch.cuda.is_available() else "cpu")
    plan = make_plan(first.pairs, first.weights, first.model, first.folder, device)
    words = [word for word in arguments if word != train.PRINT]
    chosen = train_parser.parse(_parser(plan.config), ["finetune", *words])
    own = (*train.OWN, "pairs", "weights")
    config = config_from({name: value for name, value in chosen.items() if name not in own})
    if train.PRINT in arguments:
        print(json.dumps(config.as_dict(), indent=2))
        return 0
    if chosen["resume"] is None:
        check_new(config.folder)
    plan = Plan(config, plan.train, plan.held_out)
    plan.write_lists()
    print(_summary(plan), flush=True)
    before, old = judge(config, device=device)
    print(f"before: {_numbers(before)}", flush=True)
    how = chosen["resume"], device, chosen["tensorboard"], chosen["minutes"]
    code = train.train(config, *how)
    if code:
        return code
    folder = Path(config.folder)
    after, new = judge(config, folder / "weights.safetensors", device)
    change = 100 * (after["epe"] / before["epe"] - 1)
    print(f"before: {_numbers(before)}\nafter:  {_numbers(after)} ({change:+.1f} % EPE)")
    if len(plan.held_out) < FEW:
        count = "One pair proves" if len(plan.held_out) == 1 else "So few pairs prove"
        print(f"warning: {count} little. Hold out more, or try the weights on others: lcv eval.")
    picture = folder / "before-after.png"
    write_image(picture, before_after_picture(old, new), overwrite=True)
    print(picture)
    return 0


def _first_look(arguments: list[str]) -> argparse.Namespace:
    """What the other settings follow from; they are not looked at yet."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--pairs")
    parser.add_argument("--weights")
    parser.add_argument("--device")
    parser.add_argument("--folder", default="runs/finetune")
    parser.add_argument("--model.name", dest="model")
    try:
        return parser.parse_known_args(arguments)[0]
    except argparse.ArgumentError as error:
        raise ArgumentError(f"{error}: {USAGE}") from None


def _parser(base: TrainConfig) -> ArgumentParser:
    """`lcv train`'s, with the two options of its own."""
    parser = train_parser.make_parser(base)
    parser.usage = USAGE
    parser.description = (
        "Fine-tune on pairs of your own with truth. A fifth of them is held out. Crops, rates and steps "
        "follow from the pairs and the device, W starts at I, and every setting below can be changed."
    )
    own = parser.add_argument_group("the pairs and where to start")
    own.add_argument(
        "--pairs",
        type=str | None,  # type: ignore[arg-type]
        help="a text file with `image1 image2 flow` on each line, or the folder of a dataset",
    )
    own.add_argument(
        "--weights",
        type=str | None,  # type: ignore[arg-type]
        help="a file of any network, or a name that `lcv models` lists",
    )
    return parser


def _summary(plan: Plan) -> str:
    config = plan.config
    height, width = config.data.size
    named = ", ".join(record.name for record in plan.held_out[:3])
    more = f" and {len(plan.held_out) - 3} more" if len(plan.held_out) > 3 else ""
    return (
        f"{config.model.name}: {counted(len(plan.train), 'pair')} to train on, {len(plan.held_out)} held out "
        f"({named}{more}); {config.steps} steps of {config.batch} crops of {height}×{width}"
    )


def _numbers(found: dict[str, float]) -> str:
    return (
        f"EPE {found['epe']:.3f} px on the held-out pairs, zero flow {found['zero_flow_epe']:.3f}"
    )

"""`lcv train`: a recipe, settings of it changed by dotted name, and a run that can be resumed."""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import json
import os
import re
import sys
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from jsonargparse import ArgumentParser

from lcv.cli.parser import device_name, remember
from lcv.errors import ArgumentError, FileError
from lcv.recipes import config_from, load_stages, recipe_names, warm_start_of
from lcv.train.config import Stages, TrainConfig
from lcv.words import meant, names_near

HELP = "`lcv train RECIPE --help` lists all settings"
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}
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
    if chosen["start"] is None:
        check_start(first)
    missing = warm_start_of(arguments[0]) if first.model.weights is None else None
    if missing is not None and _is_first():
        print(f"note: --model.weights is not given: {missing}", file=sys.stderr)

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


def make_parser(base: TrainConfig) -> ArgumentParser:
    """Every field of the configuration as an option, with the recipe's value as its default."""
    parser = ArgumentParser(
        prog="lcv train",
        usage="lcv train RECIPE [--resume auto|CHECKPOINT] [--SETTING VALUE …] [--print_config]",
        description=f"Train as a recipe says, or on pairs of your own: `lcv train finetune --help`. "
        f"Recipes: {', '.join(recipe_names())}; or the path of "
        f"a .py file with a function recipe(), or of a run's config.json. `lcv train RECIPE --help` "
        f"shows that recipe's settings as defaults; --print_config prints, as JSON, what all of "
        f"it comes to, and does nothing.",
        exit_on_error=False,
        add_help=False,
    )
    own = parser.add_argument_group("the run")
    own.add_argument("recipe", help="see above")
    own.add_argument(
        "--resume",
        type=str | None,  # type: ignore[arg-type]
        help="auto: go on from the folder's newest checkpoint, or begin; or a checkpoint's path",
    )
    own.add_argument("--stage", type=str | None, help="of several, the one to run")  # type: ignore[arg-type]
    own.add_argument(
        "--start",
        type=str | None,  # type: ignore[arg-type]
        help="go on from these weights of a stage that is done or was stopped, without its checkpoint",
    )
    own.add_argument(
        "--minutes",
        type=float | None,  # type: ignore[arg-type]
        help="stop and save after these",
    )
    own.add_argument(
        "--device",
        type=str | None,  # type: ignore[arg-type]
        help="cuda or cpu; the GPU where there is one",
    )
    own.add_argument("--tensorboard", type=bool, default=False, help="log to TensorBoard too")
    _add_fields(parser, base, "")
    return parser


def _add_fields(parser: ArgumentParser, record: Any, prefix: str) -> None:
    kind = type(record)
    hints, documented = get_type_hints(kind), field_docs(kind)
    group = parser.add_argument_group(prefix.rstrip(".") or "settings", inspect.getdoc(kind))
    nested = []
    for field in fields(kind):
        value = getattr(record, field.name)
        if is_dataclass(value):
            nested.append((value, f"{prefix}{field.name}."))
            continue
        text = documented.get(field.name, "").replace("%", "%%")
        hint = _without_records(hints[field.name])
        group.add_argument(f"--{prefix}{field.name}", type=hint, default=value, help=text)
    for value, inner in nested:
        _add_fields(parser, value, inner)


def _without_records(hint: Any) -> Any:
    """Records inside lists and dictionaries are checked by `config_from`, whose errors name the
    close known names."""
    inner = get_args(hint)
    if any(is_dataclass(kind) for kind in inner):
        return Any
    if get_origin(hint) is dict and _without_records(inner[1]) is Any:
        return dict[str, Any]
    return hint


def field_docs(kind: type) -> dict[str, str]:
    """The string below each field of a dataclass, which Python itself forgets."""
    (body,) = (node for node in _classes(kind.__module__) if node.name == kind.__name__)
    docs = {}
    for line, after in pairwise(body.body):
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            docs[line.target.id] = " ".join(str(after.value.value).split())
    return docs


@functools.cache
def _classes(module: str) -> list[ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def parse(parser: ArgumentParser, arguments: list[str]) -> dict[str, Any]:
    """The words as nested values; all that is wrong with them in one error."""
    known = [option for action in parser._actions for option in action.option_strings]
    remember(parser._actions, arguments)
    words, faults = arguments, []
    for word in arguments[1:]:
        option = word.partition("=")[0]
        if option.startswith("--") and not _is_known(option, known):
            faults.append(f"there is no option {option}{nearest(option, known)}")
            words = _without(words, option)
    while True:
        try:
            found = dict(parser.parse_args(words).as_dict())
            break
        except argparse.ArgumentError as error:
            said, option = _sentence(" ".join(str(error).split()), parser)
            faults.append(said)
            rest = _without(words, option)
            if rest == words:
                break
            words = rest
    if faults:
        raise ArgumentError(f"{'; '.join(faults)}; {HELP}")
    return found


def _without(words: list[str], option: str) -> list[str]:
    """The words without an option and its value."""
    kept, after = [], False
    for word in words:
        own = word == option or word.startswith(f"{option}=")
        if not own and not (after and not word.startswith("--")):
            kept.append(word)
        after = word == option
    return kept


def _sentence(message: str, parser: ArgumentParser) -> tuple[str, str]:
    """jsonargparse's words as ours, and the option that they are about.

    What is not known here is passed on as it is, with no option.
    """
    found = re.fullmatch(r'Parser key "(.*?)": (.*?)\.? Got value: (.*)', message)
    if found is None:
        return message, ""
    option = f"--{found[1]}"
    wanted = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", found[2])
    if wanted.startswith("Expected a tuple"):
        like = _in_brackets(found[1], parser)
        return f"{option} is {found[3]!r}, wanted values in brackets, such as '{like}'", option
    for kind, words in KINDS.items():
        wanted = re.sub(rf"Expected an? {kind}", f"wanted {words}", wanted)
    return f"{option} is {found[3]!r}, {wanted}", option


def _in_brackets(name: str, parser: ArgumentParser) -> str:
    """A value of this setting as the command line takes it: the recipe's, if it has one."""
    usual = parser.get_default(name)
    if not usual:
        return "[NAME, NAME]" if name == "data.exclude" else "[1000, 2000]"
    return json.dumps([round(value, 3) for value in usual])


def nearest(option: str, known: list[str]) -> str:
    """Options whose last word is close, wherever they are; else those of the same group, if any."""
    last = {name: name.lstrip("-").rpartition(".")[2] for name in known}
    close = names_near(option.lstrip("-").rpartition(".")[2], set(last.values()), 3)
    near = [name for name in known if last[name] in close]
    if near:
        return meant(near)
    group = option.rpartition(".")[0]
    beside = [name for name in known if group and name.rpartition(".")[0] == group]
    return f", wanted one of {', '.join(beside)}" if beside else ""


def _is_known(option: str, known: list[str]) -> bool:
    """A name of the list; or below one, since the values of some settings have names (options)."""
    return any(option == name or option.startswith(f"{name}.") for name in known)

"""The words of `lcv train` as a configuration: every field an option, every mistake a sentence."""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import json
import re
import sys
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

from jsonargparse import ArgumentParser

from lcv.cli.parser import remember
from lcv.errors import ArgumentError
from lcv.recipes import recipe_names
from lcv.train.config import TrainConfig
from lcv.words import meant, names_near

HELP = "`lcv train RECIPE --help` lists all settings"
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}


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
    remember(parser._actions)
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

"""The parser of every verb: wrong words become sentences that say found, wanted, and what to do.

It also knows which argument of Python is which option, so that an error from below, which speaks
of `max_memory`, is told to somebody who wrote `--max-memory`.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from lcv.errors import ArgumentError
from lcv.words import did_you_mean

_options: dict[str, str] = {}
"""Of the verb at work: the option behind each argument's name."""


class Parser(argparse.ArgumentParser):
    """argparse's, with errors of ours in place of its own; its subparsers are of this class too."""

    def __init__(self, prog: str, **more: Any) -> None:
        # An abbreviation would change its meaning on the day that a new option begins alike.
        super().__init__(prog, **{"allow_abbrev": False, **more})
        self.register("type", int, integer)
        self.register("type", float, number)

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"{self._sentence(message)}; `{self.prog} --help` lists all options")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Unknown options are told first: what else is amiss may well follow from them."""
        words = list(args or [])
        if not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            remember(self._actions)
            self._check_options(words)
        return super().parse_known_args(words, namespace)

    def _check_options(self, words: Sequence[str]) -> None:
        known = [option for action in self._actions for option in action.option_strings]
        for word in words:
            option = word.partition("=")[0]
            if word == "--":
                return
            if option.startswith("--") and option not in known:
                self.error(f"there is no option {option}{did_you_mean(option, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        meant = did_you_mean(str(value), known)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no `{self.prog} {value}`, wanted {either(known)}{meant}")
        self.error(f"{name_of(action)} is {value!r}, wanted {either(known)}{meant}")

    def _sentence(self, message: str) -> str:
        """argparse's words as ours; what is not known here is passed on as it is."""
        if found := re.fullmatch(r"the following arguments are required: (.*)", message):
            return (
                f"missing: {', '.join(name + self._about(name) for name in found[1].split(', '))}"
            )
        if found := re.fullmatch(r"one of the arguments (.*) is required", message):
            return f"wanted {either(found[1].split())}, found none of them"
        if found := re.fullmatch(r"unrecognized arguments: (.*)", message):
            known = [option for action in self._actions for option in action.option_strings]
            meant = did_you_mean(found[1].split()[0], known)
            return f"{found[1]}: no place for this here, wanted an option or nothing{meant}"
        if found := re.fullmatch(r"argument (.*): not allowed with argument (.*)", message):
            return f"{found[1]} does not go together with {found[2]}; leave one of them out"
        if found := re.fullmatch(r"argument (.*): expected (.*) arguments?", message):
            return (
                f"{found[1]}: too few values or too many, wanted {found[2]}:{self._about(found[1])}"
            )
        if found := re.fullmatch(r"argument (.*?): (is '.*)", message, re.DOTALL):
            return f"{found[1]} {found[2]}"
        if found := re.fullmatch(r"argument (.*): ignored explicit argument (.*)", message):
            return f"{found[1]} is given the value {found[2]}, but takes none"
        return message.removeprefix("argument ")

    def _about(self, name: str) -> str:
        """` FOLDER (where to write)`: what the help says of an argument."""
        for action in self._actions:
            if name in (name_of(action), action.metavar, action.dest):
                metavar = action.metavar if action.option_strings else None
                metavar = " ".join(metavar) if isinstance(metavar, tuple) else metavar
                value = f" {metavar}" if metavar else ""
                words = (action.help or "") % {**vars(action), "prog": self.prog}
                return value + (f" ({words})" if words else "")
        return ""


def name_of(action: argparse.Action) -> str:
    """As the help writes it: `-o/--output`, or the place's own name."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def either(names: Sequence[str]) -> str:
    """a, b or c"""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def remember(actions: Iterable[argparse.Action]) -> None:
    """From now on these are the options that `in_options` speaks of."""
    _options.clear()
    for option in (each for action in actions for each in action.option_strings):
        if option.startswith("--"):
            _options[option[2:].replace("-", "_")] = option


def in_options(message: str) -> str:
    """An error's text with the verb's options in place of Python's arguments.

    Replaced are `name=VALUE` and names with an underscore anywhere, and other names where a line
    begins with them (`name is 3`, `unknown name 'x'`). Not replaced: names after "in Python", in
    quotes, in a path or a pattern, and before a colon, since that is how our errors name a file.
    """
    message = _without_caller(message)
    outside = r"(?<![\w/\\.'\"`=-])"
    for plain, option in _options.items():
        name = re.escape(plain)
        message = re.sub(rf"{outside}(?<!in Python ){name}=(?=\S)", f"{option} ", message)
        if "_" in plain:
            message = re.sub(rf"{outside}{name}(?![\w/\\='\":*]|\.\w)", option, message)
        begins = rf"(?m)^(\s*){name}(?= (?:is|are|has|')|: unknown )"
        message = re.sub(begins, rf"\g<1>{option}", message)
        words = re.escape(plain.replace("_", " "))
        missing = rf"(?m)^(\s*)(?=(?:unknown|there is no) {words} ')"
        message = re.sub(missing, rf"\g<1>{option}: ", message)
    return message


def _without_caller(message: str) -> str:
    """`draw_scene: size is 3×3` without the name of the function that says so."""
    names = "|".join(re.escape(name.replace("_", " ")) for name in _options)
    about = rf"(?:{names}) is |(?:unknown|there is no) (?:{names}) '"
    found = re.match(rf"(\w+): (?={about})", message)
    # It may be somebody's folder, too, which then has to stay.
    if not _options or found is None or Path(found[1]).exists():
        return message
    return message[found.end() :]


def integer(text: str) -> int:
    """A whole number of any sign."""
    try:
        return int(text)
    except ValueError:
        raise _unlike(text, "a whole number") from None


def whole(text: str) -> int:
    """A whole number of 1 or more."""
    return _at_least(text, 1)


def frames(text: str) -> int:
    """A whole number of 2 or more, since flow needs two frames."""
    return _at_least(text, 2)


def count(text: str) -> int:
    """A whole number of 0 or more."""
    return _at_least(text, 0)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _unlike(text, "a number")
    return value


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        value = number(text)
    except argparse.ArgumentTypeError:
        value = 0.0
    if value <= 0:
        raise _unlike(text, "a number above 0")
    return value


def not_negative(text: str) -> float:
    """A finite number of 0 or more."""
    value = number(text)
    if value < 0:
        raise _unlike(text, "a number of 0 or more")
    return value


def seconds(text: str) -> Fraction:
    """A time of 0 or more: 90, 90.5 or 1:30.5."""
    if not re.fullmatch(r"(\d+:){0,2}\d+(\.\d+)?", text):
        raise _unlike(text, "seconds, as in 2.5, or minutes and seconds, as in 1:30")
    parts = map(Fraction, reversed(text.split(":")))
    return sum((part * 60**place for place, part in enumerate(parts)), Fraction(0))


def size(text: str) -> tuple[int, int]:
    """HxW: height and width."""
    found = re.fullmatch(r"(\d+)\s*[x×]\s*(\d+)", text.strip(), re.IGNORECASE)
    if not found or not int(found[1]) or not int(found[2]):
        raise _unlike(text, "HxW, for instance 440x1024")
    return int(found[1]), int(found[2])


def device_name(text: str) -> str:
    """cpu, or cuda or cuda:N where there is such a GPU."""
    found = re.fullmatch(r"cpu|cuda(?::(\d+))?", text)
    if not found:
        raise _unlike(text, "cpu, cuda, or cuda:N for the GPU of number N")
    if text != "cpu":
        import torch

        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not gpus:
            raise _unlike(text, "cpu: there is no GPU here that torch can use")
        if int(found[1] or 0) >= gpus:
            raise _unlike(text, either([f"cuda:{each}" for each in range(gpus)]))
    return text


def _at_least(text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]+", text) or int(text) < least:
        raise _unlike(text, f"a whole number of {least} or more")
    return int(text)


def _unlike(text: str, wanted: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"is {text!r}, wanted {wanted}")

"""Networks that the user builds: `package.module:factory` or `file.py:factory` in place of a name.

The factory is called with the options of the network, and with `inner_product` if it takes one. It
returns a `FlowModel`, or any network that `lcv.wrap` can make one of. Nothing is imported that the
user has not named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError
from lcv.models.published import sha256_of
from lcv.usercode import import_file, import_module, user_errors
from lcv.words import did_you_mean


@dataclass(frozen=True)
class Factory:
    """A function that builds a network.

    name:   as results show it: without the folder of its file
    source: the file it is defined in;  sha256: that file's hash, None where there is no file
    """

    name: str
    function: Callable[..., Any]
    source: Path | None
    sha256: str | None

    @property
    def takes_inner_product(self) -> bool:
        return "inner_product" in inspect.signature(self.function).parameters

    def __call__(self, **options: Any) -> Any:
        taken = inspect.signature(self.function).parameters
        open_ended = any(each.kind is each.VAR_KEYWORD for each in taken.values())
        unknown = [] if open_ended else [repr(each) for each in options if each not in taken]
        if unknown:
            raise ArgumentError(
                f"{self.name}: unknown option {', '.join(unknown)}; it takes "
                f"{', '.join(taken) or 'none'}"
            )
        with user_errors(self.source or Path(self.name)):
            network = self.function(**options)
        if not callable(network):
            raise ArgumentError(
                f"{self.name} returned {type(network).__name__}, wanted a network: an nn.Module or "
                f"a function of two images"
            )
        return network


def is_factory(name: object) -> bool:
    """Whether this names a factory: MODULE:FUNCTION or FILE.py:FUNCTION."""
    if not isinstance(name, str):
        return False
    where, colon, function = name.rpartition(":")
    return bool(colon and where) and function.isidentifier()


def label_of(name: str) -> str:
    """A network's name as results show it: of a factory in a file, without the folder."""
    return Path(name).name if is_factory(name) else name


def find_factory(name: str) -> Factory:
    """The factory of a name for which `is_factory` holds; imports its module."""
    where, _, function = name.rpartition(":")
    is_file = where.endswith(".py")
    module = import_file(Path(where)) if is_file else import_module(where)
    found = getattr(module, function, None)
    if found is not None and not callable(found):
        raise ArgumentError(
            f"{name}: {function} is of class {type(found).__name__}, wanted a function that returns "
            f"a network"
        )
    if found is None:
        own = [each for each in vars(module) if not each.startswith("_")]
        raise ArgumentError(
            f"{name}: {where} has no function {function}{did_you_mean(function, own)}; wanted one "
            f"that returns a network"
        )
    try:
        defined = inspect.getsourcefile(found)
    except TypeError:  # one that was made by a call, such as functools.partial
        defined = module.__file__
    source = Path(defined) if defined else None
    return Factory(label_of(name), found, source, None if source is None else sha256_of(source))

"""Which dataclasses of a package are values: they cannot be changed after they are made."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil


def dataclasses_of(package: str, *names: str) -> dict[str, tuple[bool, bool, bool]]:
    """By name: whether each is frozen, compared by its fields, and shown with them.

    names: of modules; all without
    """
    found = {}
    home = importlib.import_module(package)
    names = names or tuple(module.name for module in pkgutil.iter_modules(home.__path__))
    for module in (f"{package}.{name}" for name in names):
        for name, each in vars(importlib.import_module(module)).items():
            own = isinstance(each, type) and each.__module__ == module
            if own and dataclasses.is_dataclass(each):
                how = each.__dataclass_params__
                found[name] = how.frozen, how.eq, how.repr
    return found

"""Which dataclasses of a package are values: they cannot be changed after they are made."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil


def dataclasses_of(package: str) -> dict[str, tuple[bool, bool, bool]]:
    """By name: whether each is frozen, compared by its fields, and shown with them."""
    found = {}
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        for name, each in vars(importlib.import_module(module.name)).items():
            own = isinstance(each, type) and each.__module__ == module.name
            if own and dataclasses.is_dataclass(each):
                how = each.__dataclass_params__
                found[name] = how.frozen, how.eq, how.repr
    return found

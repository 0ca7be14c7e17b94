"""Modules of the extras, and programs, that some tests need and not every machine has.

Where one is absent the test skips with a reason. In CI it must be there, so its absence is a failure
and not a skip.
"""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from types import ModuleType

import pytest


def needs(module: str) -> ModuleType:
    """The module; skips what is running if it is not installed, and fails it in CI."""
    try:
        return import_module(module)
    except ImportError:
        return absent(f"{module} is not installed; `make setup` brings it")


def programs(*names: str) -> list[str]:
    """Where these programs are; skips what is running if one is missing, and fails it in CI."""
    found = [shutil.which(name) for name in names]
    if None in found:
        absent(f"{' and '.join(names)} are not here; Debian has them")
    return [path for path in found if path is not None]


def absent(reason: str) -> ModuleType:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)

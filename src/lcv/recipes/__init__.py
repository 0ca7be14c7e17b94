"""Experiments as short Python files, each with a function `recipe()` that returns a TrainConfig, or
several by name: the stages of one run.

    lcv train raft_kitti                      # a name: a file of this folder
    lcv train mine.py --optim.lr 1e-4         # a path: a file of one's own
    lcv train runs/old/config.json            # what another run resolved to

To write one, copy the nearest, or call it and change what differs with `dataclasses.replace`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import reprlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lcv.errors import ArgumentError
from lcv.files import SMALL, read_json
from lcv.recipes.stored import config_from
from lcv.train.config import Stages, TrainConfig
from lcv.usercode import import_file, user_errors
from lcv.words import did_you_mean

__all__ = ["config_from", "load_recipe", "load_stages", "recipe_names"]

HELPERS = ("stored",)


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if name not in HELPERS)


def load_recipe(name_or_path: str | os.PathLike[str]) -> TrainConfig:
    """The configuration that a recipe of one stage returns; what it can be is said above."""
    stages = load_stages(name_or_path)
    if len(stages) > 1:
        raise ArgumentError(
            f"{name_or_path}: has the stages {', '.join(stages)}, wanted a recipe of one"
        )
    return next(iter(stages.values()))


def load_stages(name_or_path: str | os.PathLike[str]) -> Stages:
    """The stages of a recipe by name; a recipe of one has the name ""."""
    name = os.fspath(name_or_path)
    if name in recipe_names():
        return _call(importlib.import_module(f"lcv.recipes.{name}"), name)
    path = Path(name)
    if path.suffix == ".py":
        module = import_file(path)
        with user_errors(path):
            return _call(module, name)
    if path.suffix == ".json":
        content = read_json(path, "a configuration, as a run's config.json", most=SMALL)
        if list(content) == ["stages"]:
            stages = content["stages"]
            if not isinstance(stages, dict) or not stages:
                raise ArgumentError(
                    f"{name}: stages is {reprlib.repr(stages)}, wanted stages by name"
                )
            return {n: _stored(each, f"{name}, {n}") for n, each in stages.items()}
        return {"": _stored(content, name)}
    which = did_you_mean(name, recipe_names(), 3)
    raise ArgumentError(
        f"there is no recipe {name!r}{which}; there are {', '.join(recipe_names())}; or give the "
        f"path of a .py file with a function recipe(), or of a run's config.json"
    )


def _stored(content: object, where: str) -> TrainConfig:
    """A configuration of a file, which every error names, also one of values that do not agree."""
    try:
        return config_from(content, where)
    except ArgumentError as error:
        said = str(error)
        raise ArgumentError(said if said.startswith(where) else f"{where}: {said}") from None


def _call(module: ModuleType, name: str) -> Stages:
    function: Callable[[], object] | None = getattr(module, "recipe", None)
    if function is None:
        raise ArgumentError(
            f"{name}: has no function recipe(), wanted one that returns TrainConfig"
        )
    made = function()
    stages: dict[str, Any] = made if isinstance(made, dict) and made else {"": made}
    for each in stages.values():
        if not isinstance(each, TrainConfig):
            raise ArgumentError(
                f"{name}: recipe() returned {type(each).__name__}, wanted lcv.train.TrainConfig, or "
                f"several by name"
            )
    return stages

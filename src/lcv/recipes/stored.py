"""A configuration back from plain values: what config.json, a checkpoint or a command line holds."""

from __future__ import annotations

import reprlib
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin, get_type_hints

from lcv.errors import ArgumentError
from lcv.train.config import TrainConfig


def config_from(values: object, where: str = "configuration") -> TrainConfig:
    """The inverse of `TrainConfig.as_dict`, also after JSON, which knows no tuples.

    Names that are left out have their defaults; unknown ones are refused. where: what to call the
    values in an error.
    """
    return _record(TrainConfig, values, where, "")


def _record(kind: Any, values: object, where: str, path: str) -> Any:
    if not isinstance(values, Mapping):
        raise ArgumentError(
            f"{where}: {path or 'the whole'} is {type(values).__name__}, wanted names and values"
        )
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    for name in values:
        if name not in known:
            near = get_close_matches(str(name), known)
            wanted = " or ".join(near) if near else "one of " + ", ".join(known)
            raise ArgumentError(f"{where}: there is no {_join(path, name)}, wanted {wanted}")
    for field in fields(kind):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in values:
            raise ArgumentError(f"{where}: {path} has no {field.name}, wanted one")
    return kind(**{n: _value(hints[n], v, where, _join(path, n)) for n, v in values.items()})


def _value(hint: Any, value: Any, where: str, path: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return value if isinstance(value, hint) else _record(hint, value, where, path)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        kinds = [kind for kind in inner if kind is not type(None)]
        records = [kind for kind in kinds if is_dataclass(kind)]
        named = isinstance(value, Mapping) or is_dataclass(value)
        hint = (records if records and named else kinds)[0]
        return _value(hint, value, where, path)
    if origin is tuple and isinstance(value, list | tuple):
        if Ellipsis not in inner and len(value) != len(inner):
            raise ArgumentError(f"{where}: {path} is {value!r}, wanted {len(inner)} values")
        return tuple(_value(inner[0], v, where, f"{path}[{i}]") for i, v in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {str(key): _value(inner[1], v, where, _join(path, key)) for key, v in value.items()}
    if hint is Any or type(value) is hint:
        return value
    if hint is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    wanted = getattr(hint, "__name__", str(hint)) if origin is None else str(hint)
    raise ArgumentError(f"{where}: {path} is {reprlib.repr(value)}, wanted {wanted}")


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)

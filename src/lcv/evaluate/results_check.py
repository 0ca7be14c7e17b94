"""What a file of results says, checked value by value before anything is made of it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from lcv.errors import ArgumentError
from lcv.evaluate.metrics import METRICS

MOST = 1e100
"""More than any sum of float32 errors; means and differences of such numbers stay finite."""
LONGEST = 4096
"""The most characters of a text, enough for a path: messages and tables repeat it."""
SETTINGS = 100
"""The most settings of a protocol: each is matched against the name of each dataset."""


class _Kind(NamedTuple):
    words: str
    fits: Callable[[Any], bool]

    def or_null(self) -> _Kind:
        return _Kind(f"{self.words} or null", lambda value: value is None or self.fits(value))


def _is_text(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST:
        return False
    # Half a character can be written in JSON, and nowhere else.
    return value.encode(errors="replace").decode() == value


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MOST


_TEXT = _Kind(f"text of at most {LONGEST:,} characters", _is_text)
_LIST = _Kind("a list", lambda value: isinstance(value, list))
_NAMES = _Kind("names with values", lambda value: isinstance(value, dict))
_BOOL = _Kind("true or false", lambda value: isinstance(value, bool))
_NUMBER = _Kind(f"a number from 0 to {MOST:g}", _is_number)
_COUNT = _Kind("a whole number from 0 on", lambda value: _is_number(value) and value % 1 == 0)
_METRIC = _Kind("a metric's name", lambda value: isinstance(value, str) and value in METRICS)

_RESULT = {"label": _TEXT, "protocol": _NAMES, "provenance": _NAMES, "datasets": _NAMES}
_PROTOCOL = {
    "name": _TEXT,
    "source": _TEXT,
    "averaging": _TEXT,
    "settings": _NAMES,
    "precision": _TEXT,
    "validity": _TEXT,
    "limit": _NUMBER.or_null(),
    "storage": _TEXT,
    "warm_start": _BOOL,
}
_SETTING = {"iters": _COUNT.or_null(), "pad": _TEXT.or_null(), "headline": _LIST}
_DATASET = {
    "metrics": _NAMES,
    "pairs": _LIST,
    "settings": _NAMES,
    "model": _NAMES,
    "weights": _NAMES.or_null(),
}
_PAIR = {"name": _TEXT, "scene": _TEXT, "sums": _NAMES, "truth": _TEXT}
# What need not be there: it has a default, or older versions did not write it.
_OPTIONAL = {"label", "precision", "validity", "limit", "storage", "warm_start", "weights", "truth"}


def check_results(said: Mapping[str, Any]) -> None:
    """Refuse what `write_results` cannot have written, by its place: "results[0].label is 7, …"."""
    _fields("the file", said, {"results": _LIST}, others=True)
    for place, result in _items("results", said["results"]):
        _fields(place, result, _RESULT)
        _protocol(f"{place}.protocol", result["protocol"], result["datasets"])
        for name, dataset in result["datasets"].items():
            _kind(f"{place}.datasets: the name {reprlib.repr(name)}", name, _TEXT)
            _dataset(f"{place}.datasets.{name}", dataset)


def _protocol(place: str, protocol: Any, datasets: Mapping[str, Any]) -> None:
    _fields(place, protocol, _PROTOCOL)
    settings = protocol["settings"]
    if len(settings) > SETTINGS:
        raise ArgumentError(f"{place} has {len(settings)} settings, wanted at most {SETTINGS}")
    for name, setting in settings.items():
        _kind(f"{place}.settings: the name {reprlib.repr(name)}", name, _TEXT)
        _fields(f"{place}.settings.{name}", setting, _SETTING)
        for where, metric in _items(f"{place}.settings.{name}.headline", setting["headline"]):
            _kind(where, metric, _METRIC)
    for dataset in datasets:
        if "*" not in settings and not dataset.startswith(tuple(settings)):
            raise ArgumentError(f"{place}.settings has none for {dataset}, wanted one, or '*'")


def _dataset(place: str, dataset: Any) -> None:
    _fields(place, dataset, _DATASET)
    for name, value in dataset["metrics"].items():
        _kind(f"{place}.metrics.{name}", value, _NUMBER)
    call = {"iters": _COUNT.or_null(), "pad": _TEXT.or_null()}
    _fields(f"{place}.settings", dataset["settings"], call, others=True)
    _kind(f"{place}.model.name", dataset["model"].get("name", ""), _TEXT)
    if dataset.get("weights"):
        _fields(f"{place}.weights", dataset["weights"], {"file": _TEXT}, others=True)
    for where, pair in _items(f"{place}.pairs", dataset["pairs"]):
        _fields(where, pair, _PAIR)
        _sums(f"{where}.sums", pair["sums"])


def _sums(place: str, sums: Mapping[str, Any]) -> None:
    for name, value in sums.items():
        _kind(f"{place}.{name}", value, _COUNT if name.startswith("pixels/") else _NUMBER)
    for metric in METRICS.values():
        if sums.get(f"pixels/{metric.region}"):
            _fields(place, sums, {f"{metric.measure}/{metric.region}": _NUMBER}, others=True)


def _items(place: str, values: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{place}[{index}]", value) for index, value in enumerate(values))


def _fields(place: str, said: Any, wanted: Mapping[str, _Kind], others: bool = False) -> None:
    """others: there may be more names than these."""
    _kind(place, said, _NAMES)
    for name, kind in wanted.items():
        if name in said:
            _kind(f"{place}.{name}", said[name], kind)
        elif name not in _OPTIONAL:
            raise ArgumentError(f"{place} has no {name!r}, wanted {kind.words}")
    unknown = [name for name in said if name not in wanted]
    if unknown and not others:
        raise ArgumentError(
            f"{place} has {reprlib.repr(unknown[0])}, wanted only {', '.join(wanted)}"
        )


def _kind(place: str, value: Any, wanted: _Kind) -> None:
    if not wanted.fits(value):
        raise ArgumentError(f"{place} is {reprlib.repr(value)}, wanted {wanted.words}")

"""Read what a report is made of; other files and folders are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.evaluate.results import FORMAT as EVALUATION
from lcv.evaluate.results import Result, read_results
from lcv.files import read_json
from lcv.studies import ablation_study
from lcv.studies.robustness import results as robustness
from lcv.studies.robustness.run import FILE as ROBUSTNESS_FILE
from lcv.train.log import read_log

WANTED = (
    "wanted a result of `lcv eval -o`, or the folder of `lcv ablate` (study.json), of "
    f"`lcv robust` ({ROBUSTNESS_FILE}) or of a training run (log.jsonl)"
)
FILES = ("study.json", ROBUSTNESS_FILE, "log.jsonl")
"""What a folder is known by."""


@dataclass(frozen=True)
class Evaluation:
    """A file of results of `lcv eval`."""

    name: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Ablation:
    """The folder of `lcv ablate`, finished or not."""

    name: str
    study: ablation_study.Study


@dataclass(frozen=True)
class Robustness:
    """The folder of `lcv robust`, and the pictures in it."""

    name: str
    study: robustness.Study
    pictures: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Training:
    """A run of `lcv train`: its configuration and its log."""

    name: str
    config: dict[str, Any]
    entries: tuple[dict[str, Any], ...]


Source = Evaluation | Ablation | Robustness | Training


def read_sources(paths: Sequence[str | Path]) -> list[Source]:
    """Every source once, in the order given; where two have one name, their folders are added."""
    places = list(dict.fromkeys(Path(path).resolve() for path in paths))
    names = [_name(place) for place in places]
    return [
        read_source(place, name if names.count(name) == 1 else f"{place.parent.name}/{name}")
        for place, name in zip(places, names, strict=True)
    ]


def read_source(path: Path, name: str | None = None) -> Source:
    """One source, of any kind."""
    name = name or _name(path)
    if path.is_dir():
        found = [path / file for file in FILES if (path / file).exists()]
        if not found:
            raise FileError(f"{path}: this folder holds nothing that a report is made of; {WANTED}")
        path = found[0]
    if not path.exists():
        raise FileError(f"{path}: there is no such file or folder; {WANTED}")
    if path.name == "log.jsonl":
        return _training(path.parent, name)
    kind = _format_of(path)
    if kind == EVALUATION:
        return Evaluation(name, tuple(read_results(path)))
    if kind == robustness.FORMAT or path.name == ROBUSTNESS_FILE:
        pictures = tuple(sorted(path.parent.glob("picture-*.png")))
        return Robustness(name, robustness.read_study(path), pictures)
    if kind == ablation_study.FORMAT or path.name == "study.json":
        return Ablation(name, ablation_study.read_study(path.parent))
    raise FileError(f"{path}: is nothing that a report is made of; {WANTED}")


def _name(path: Path) -> str:
    if path.name in FILES:
        return path.resolve().parent.name
    return path.stem if path.suffix == ".json" else path.resolve().name


def _format_of(path: Path) -> str | None:
    """The "format" of a JSON file; None for other files, which are refused by their kind later."""
    try:
        return str(read_json(path, "JSON").get("format"))
    except FileError as error:
        if isinstance(error.__context__, OSError):  # it cannot be read at all
            raise
        return None


def _training(folder: Path, name: str) -> Training:
    try:
        entries = tuple(read_log(folder / "log.jsonl"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{folder}: its log cannot be read ({error})") from None
    path = folder / "config.json"
    config = read_json(path, "the configuration of a run") if path.exists() else {}
    if not all(isinstance(e, dict) and "kind" in e and "step" in e for e in entries):
        raise FileError(f"{folder}: log.jsonl is not the log of a training run of ours")
    return Training(name, config, entries)

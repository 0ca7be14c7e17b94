"""An ablation and its folder.

OUT/study.json           the base configuration, tests, columns and seeds; the weights by name and hash
OUT/cells/lcv-0/         one training run: config.json, log.jsonl, result.json, weights
OUT/validation.txt, test.txt     the held-out scenes of a file dataset
OUT/table.md, plot.svg   the results so far

Columns and seeds may be added later; a setting that would change a number may not change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from lcv.errors import ArgumentError, FileError
from lcv.files import read_json, write_text
from lcv.models.archive import read_checkpoint
from lcv.models.build import find
from lcv.models.published import sha256_of
from lcv.models.weights import kind_of_w
from lcv.recipes.stored import config_from
from lcv.studies.ablation_base import check_size, network_for
from lcv.studies.ablation_split import (
    HELD_OUT,
    RULES,
    check_not_trained_on,
    held_out_config,
    write_list,
)
from lcv.studies.columns import BY_NAME, COLUMNS, Column
from lcv.studies.null_controls import null_controls
from lcv.train.config import TrainConfig, by_dotted_name
from lcv.train.network import settled

FORMAT = "lcv ablation 1"
MAY_CHANGE = (
    *("folder", "log_every", "save_every", "keep_every", "model.weights", "validation"),
    *("data.textures", "data.root", "data.workers", "data.ahead"),
)
"""Settings that change no reported number: paths and speed."""


@dataclass(frozen=True)
class Cell:
    """A column with a seed; one cell for all seeds where nothing is drawn, as in "original"."""

    column: Column
    seed: int
    drawn: bool = True

    @property
    def name(self) -> str:
        return f"{self.column.name}-{self.seed}" if self.drawn else self.column.name

    def __str__(self) -> str:
        return f"{self.column.name}, seed {self.seed}" if self.drawn else self.column.name


@dataclass(frozen=True)
class Study:
    """An ablation: one base run, changed by column and seed, measured on the same pairs.

    base:  what every column shares; weights, data, schedule, steps
    tests: what is reported, by name: "procedural", or a dataset's folder or list
    pairs: how many procedural pairs are tested on
    split: how scenes of a file dataset are held out, see `split_scenes`
    keep:  whether a finished cell keeps its best weights
    null:  the names of columns that compute what "continued" does, see `null_controls`
    """

    folder: Path
    base: TrainConfig
    columns: tuple[Column, ...]
    seeds: tuple[int, ...]
    tests: dict[str, str]
    pairs: int = 200
    split: str = RULES[0]
    weights_sha256: str | None = None
    keep: bool = True
    null: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        return self.base.model.name

    def cells(self) -> Iterator[Cell]:
        """Seed by seed, so that a stopped study has whole seeds to compare."""
        cells = (self.cell(column.name, seed) for seed in self.seeds for column in self.columns)
        yield from dict.fromkeys(cells)

    def cell(self, column: str, seed: int) -> Cell:
        """The cell that holds a column's numbers for a seed."""
        if column not in {each.name for each in self.columns} or seed not in self.seeds:
            raise ArgumentError(f"{self.folder}: the study has no cell {column}, seed {seed}")
        drawn = BY_NAME[column].trained or self.base.model.weights is None
        return Cell(BY_NAME[column], seed if drawn else self.seeds[0], drawn)

    def folder_of(self, cell: Cell) -> Path:
        return self.folder / "cells" / cell.name

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """What a finished cell measured; None if it is not finished."""
        path = self.folder_of(cell) / "result.json"
        return read_json(path, "a cell's result") if path.exists() else None

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed when it was last tried."""
        path = self.folder_of(cell) / "failure.txt"
        return path.read_text(encoding="utf-8").strip() if path.exists() else None

    def weights(self) -> Path | None:
        return None if self.base.model.weights is None else find(self.base.model.weights)

    def check_weights(self) -> None:
        """Refuse weights other than those the study began with."""
        found = self.weights()
        if found is not None and sha256_of(found) != self.weights_sha256:
            raise FileError(
                f"{found}: is not the file that {self.folder} began with, {self.base.model.weights} "
                f"of the sha256 {self.weights_sha256}; give that one with --weights"
            )

    def as_dict(self) -> dict[str, Any]:
        """For study.json, with the weights' file name and hash in place of their path."""
        weights = self.base.model.weights
        named = replace(self.base.model, weights=None if weights is None else Path(weights).name)
        return {
            "format": FORMAT,
            "base": replace(self.base, model=named).as_dict(),
            "columns": [column.name for column in self.columns],
            "seeds": list(self.seeds),
            "tests": self.tests,
            "pairs": self.pairs,
            "split": self.split,
            "weights_sha256": self.weights_sha256,
            "keep": self.keep,
            "null_controls": list(self.null),
        }


def prepare(
    folder: str | os.PathLike[str],
    base: TrainConfig,
    columns: Sequence[Column],
    seeds: Sequence[int],
    tests: dict[str, str] | None = None,
    pairs: int = 200,
    split: str = RULES[0],
    keep: bool = True,
) -> Study:
    """Start a study in a folder, or join the one that it holds if the settings are the same.

    tests: datasets to report besides the held-out pairs of the training's own kind
    """
    folder = Path(folder)
    _check(base, seeds, pairs)
    check_size(base)
    base, _ = settled(base, cast(Any, network_for(base.model)))
    _check_folder(folder)
    weights = None
    if base.model.weights is not None:
        weights = sha256_of(_start_of(find(base.model.weights), columns))
    base, lists = held_out_config(replace(base, folder=""), folder, split)
    own = (
        {"procedural": "procedural"}
        if base.data.source == "procedural"
        else {HELD_OUT: str(folder / "test.txt")}
    )
    for name, where in (tests or {}).items():
        if name in own:
            raise ArgumentError(f"test {name!r} is the study's own; call {where} something else")
        check_not_trained_on(base, where)
    null = null_controls(base.model, columns)
    every = own | (tests or {})
    seeds = tuple(dict.fromkeys(seeds))
    study = Study(folder, base, tuple(columns), seeds, every, pairs, split, weights, keep, null)
    if (folder / "study.json").exists():
        study = _joined(read_study(folder), study)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(study.as_dict(), indent=2) + "\n"
    write_text(folder / "study.json", text, overwrite=True)
    for path, records in lists.items():
        write_list(records, path)
    return study


def read_study(folder: str | os.PathLike[str]) -> Study:
    """The study that a folder holds."""
    folder = Path(folder)
    path = folder / "study.json"
    if not path.exists():
        raise FileError(f"{folder}: holds no ablation; wanted the folder of one, with study.json")
    said = read_json(path, "a study that `lcv ablate` wrote", FORMAT)
    unknown = [name for name in said["columns"] if name not in BY_NAME]
    if unknown:
        raise FileError(f"{path}: there is no column {unknown[0]!r}; the file is of a newer lcv")
    base = config_from(said["base"], str(path))
    columns = tuple(BY_NAME[name] for name in said["columns"])
    if "null_controls" not in said:  # a study of version 0.1, which knew our own networks alone
        said["null_controls"] = null_controls(base.model, columns)
    own = {name: said[name] for name in ("tests", "pairs", "split", "weights_sha256", "keep")}
    null = tuple(said["null_controls"])
    return Study(folder, base, columns, tuple(said["seeds"]), null=null, **own)


def _joined(old: Study, new: Study) -> Study:
    """The new study with the old one's columns and seeds too; other settings are refused."""
    before, now = _what_counts(old), _what_counts(new)
    for name in now:
        if before[name] != now[name]:
            raise ArgumentError(
                f"{old.folder}: holds an ablation with {name} {before[name]!r}, and this one has "
                f"{now[name]!r}; numbers of both cannot stand in one table. Choose another folder."
            )
    names = {column.name for column in (*old.columns, *new.columns)}
    columns = tuple(column for column in COLUMNS if column.name in names)
    seeds = tuple(dict.fromkeys((*old.seeds, *new.seeds)))
    null = tuple(dict.fromkeys((*old.null, *new.null)))
    return replace(new, columns=columns, seeds=seeds, null=null)


def _what_counts(study: Study) -> dict[str, Any]:
    """Everything that changes a reported number, by dotted name."""
    flat = by_dotted_name(study.base.as_dict())
    own = {"pairs": study.pairs, "split": study.split, "tests": sorted(study.tests)}
    flat = {name: value for name, value in flat.items() if name not in MAY_CHANGE}
    return {**flat, **own, "weights": study.weights_sha256}


def _check(base: TrainConfig, seeds: Sequence[int], pairs: int) -> None:
    if not seeds:
        raise ArgumentError("seeds is empty, wanted at least one; three or more give intervals")
    if any(not 0 <= seed < 2**30 for seed in seeds):
        raise ArgumentError(f"seeds are {list(seeds)}, wanted whole numbers from 0 to 2³⁰ − 1")
    if pairs < 1:
        raise ArgumentError(f"pairs is {pairs}, wanted at least 1")
    if not 1 <= base.validate_every <= base.steps:
        raise ArgumentError(
            f"validate_every is {base.validate_every} and there are {base.steps} steps; wanted 1 to "
            f"{base.steps}, so that a best checkpoint can be chosen"
        )


def _start_of(weights: Path, columns: Sequence[Column]) -> Path:
    """The same file, from which every column can start; ArgumentError if one cannot."""
    kind = kind_of_w(read_checkpoint(weights).state)
    if kind is not None and any(column.inner_product != kind for column in columns):
        raise ArgumentError(
            f"{weights.name} already has a W, and the columns must start without one; use weights "
            f"without W, such as raft-small-vanilla, or remove it with `lcv fold`"
        )
    return weights


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: this is a file, wanted a folder for the study")
    # A hidden file may be the study.json that another process is writing.
    seen = [path for path in folder.glob("*") if not path.name.startswith(".")]
    if seen and not (folder / "study.json").exists():
        raise FileError(f"{folder}: holds other things than an ablation; choose a new folder")

"""Training, validation and test parts that share no scene.

Procedural pairs have other seeds in each part, and validation and test have textures that training
never sees. Files are split by whole scenes, with all their frames, passes and cameras.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lcv.data.listfile import listfile
from lcv.data.record import Frame, FrameRef, Record
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.errors import ArgumentError
from lcv.evaluate.sources import records_in
from lcv.files import write_text
from lcv.train.batches import texture_bank
from lcv.train.config import DataConfig, TrainConfig
from lcv.train.files import list_records, name_of
from lcv.train.kept import Pair
from lcv.train.validate import AT_ONCE

TEST_SEED = 3 * 2**30  # training's seeds are small numbers, validation's is 2³¹
RULES = ("hash", "every-fifth")
HELD_OUT = "held-out"
"""The name of the test on the held-out scenes of files."""


@dataclass(frozen=True)
class Split:
    """Scenes of a file dataset by side, and the records that belong to the last two."""

    training: tuple[str, ...]
    validation: tuple[Record, ...]
    test: tuple[Record, ...]

    @property
    def excluded(self) -> tuple[str, ...]:
        """What training leaves out, by the names that `data.exclude` takes."""
        return tuple(sorted({name_of(record) for record in (*self.validation, *self.test)}))


def split_scenes(scenes: Collection[str], rule: str = "hash") -> tuple[list[str], list[str]]:
    """The scenes for choosing a checkpoint and for reporting: a tenth and a fifth, at least one.

    hash:        in the order of sha256(scene), the first fifth is the test, the next tenth the
                 validation
    every-fifth: scenes 0, 5, 10, … of the sorted list are the test (of KITTI 2015 the 40 that VCN
                 and, it seems, the paper used); validation as before, of the rest
    """
    if rule not in RULES:
        raise ArgumentError(f"split is {rule!r}, wanted one of {', '.join(RULES)}")
    names = sorted(set(scenes))
    if len(names) < 3:
        raise ArgumentError(
            f"the training data have {len(names)} scene{'s' * (len(names) != 1)}, wanted at least "
            f"3: one to train on, one to choose the best checkpoint by, one to report"
        )
    order = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    fifth, tenth = max(1, len(names) // 5), max(1, len(names) // 10)
    test = order[:fifth] if rule == "hash" else names[::5]
    rest = [name for name in order if name not in set(test)]
    return sorted(rest[:tenth]), sorted(test)


def split_files(data: DataConfig, rule: str = "hash") -> Split:
    """The split of the datasets of a configuration, by scene."""
    records = [record for part in data.parts for record in list_records(part, data)]
    left_out = set(data.exclude)
    records = [record for record in records if name_of(record) not in left_out]
    validation, test = split_scenes([record.scene for record in records], rule)
    sides = dict.fromkeys(validation, "validation") | dict.fromkeys(test, "test")
    kept: dict[str, dict[str, Record]] = {"validation": {}, "test": {}}
    for record in records:
        if record.scene in sides:
            kept[sides[record.scene]][name_of(record)] = record  # once, though a mixture repeats
    for record in (*kept["validation"].values(), *kept["test"].values()):
        if record.flow is None:
            raise ArgumentError(
                f"{name_of(record)} has no truth, by which the study could choose and report; "
                f"wanted a dataset with truth, also for training without supervision"
            )
    training = sorted({record.scene for record in records} - set(sides))
    held_out = Split(
        tuple(training), tuple(kept["validation"].values()), tuple(kept["test"].values())
    )
    used = [record for record in records if record.scene not in sides]
    check_apart(used, [*held_out.validation, *held_out.test])
    check_apart(held_out.validation, held_out.test)
    return held_out


def check_apart(training: Collection[Record], held_out: Collection[Record]) -> None:
    """Refuse a frame that is on both sides, whatever its scene and its path are called."""
    seen = {_place(f): record for record in training for f in (record.image1, record.image2)}
    for record in held_out:
        for frame in (record.image1, record.image2):
            other = seen.get(_place(frame))
            if other is not None:
                raise ArgumentError(
                    f"{frame}: is a frame of {name_of(other)!r} on one side of the split and of "
                    f"{name_of(record)!r} on the other; the numbers would not be held out. Name "
                    f"one of them in data.exclude."
                )


def _place(frame: Frame) -> str:
    """Where a frame really lies."""
    if isinstance(frame, FrameRef):
        return f"{os.path.realpath(frame.video)}#{frame.index}"
    return os.path.realpath(frame)


def write_list(records: Collection[Record], path: Path) -> None:
    """Held-out records as a list file, which `lcv eval` and validation read."""
    lines = []
    for record in records:
        if record.step != 1 or record.disparity is not None or record.flow is None:
            raise ArgumentError(
                f"{name_of(record)}: truth of this kind cannot be named in a list of pairs; "
                f"write the dataset as images and flow files first"
            )
        files = [Path(str(each)).absolute() for each in (record.image1, record.image2, record.flow)]
        lines.append(" ".join(_quoted(str(file)) for file in files))
    write_text(path, "\n".join(lines) + "\n", overwrite=True)


def held_out_records(data: DataConfig, path: str | Path) -> list[Record]:
    """The records that `write_list` wrote, with the names and scenes of their datasets."""
    written = [_place(record.image1) for record in listfile(path)]
    found: dict[str, Record] = {}
    for part in data.parts:
        for record in list_records(part, data):
            found.setdefault(_place(record.image1), record)
    lost = [place for place in written if place not in found]
    if lost:
        raise ArgumentError(f"{path}: names {lost[0]}, which is not among the training data")
    return [found[place] for place in written]


def _quoted(path: str) -> str:
    mark = "'" if '"' in path else '"'
    return f"{mark}{path}{mark}"


def held_out_config(
    base: TrainConfig, folder: Path, rule: str = "hash"
) -> tuple[TrainConfig, dict[Path, tuple[Record, ...]]]:
    """The base with validation and exclusions set by the split, and for files the lists to write."""
    if base.data.source == "procedural":
        return replace(base, validation={"validation": "procedural"}, best="validation/epe"), {}
    split = split_files(base.data, rule)
    lists = {folder / "validation.txt": split.validation, folder / "test.txt": split.test}
    config = replace(
        base,
        data=replace(base.data, exclude=tuple(sorted({*base.data.exclude, *split.excluded}))),
        validation={"validation": str(folder / "validation.txt")},
        best="validation/epe",
    )
    return config, lists


def check_not_trained_on(base: TrainConfig, folder: str) -> None:
    """Refuse a test folder of which a frame is trained on."""
    tested = [record for record in records_in([folder]) if isinstance(record, Record)]
    if base.data.source != "files":
        return
    excluded = set(base.data.exclude)
    records = [record for part in base.data.parts for record in list_records(part, base.data)]
    check_apart([record for record in records if name_of(record) not in excluded], tested)


def procedural_test_pairs(config: TrainConfig, count: int, device: torch.device) -> Iterator[Pair]:
    """Pairs of the training's kind, with other scenes and textures; the same for every cell."""
    data = config.data
    bank = texture_bank(data, "held-out", device)
    recipe = RECIPES[data.recipe]
    for first in range(0, count, AT_ONCE):
        indices = range(first, min(first + AT_ONCE, count))
        made = generate(recipe, TEST_SEED, indices, data.size, device, textures=bank)
        yield made.image1, made.image2, made.flow, torch.ones_like(made.occluded)

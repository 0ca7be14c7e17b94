"""Fine-tuning on one's own pairs: some are held out, settings follow from the data, W starts at I.

    plan = make_plan("pairs.txt", "raft-small")
    before = judge(plan.config)
    run(plan.config)
    after = judge(plan.config, "runs/finetune/weights.safetensors")

Which pairs are trained on and which are held out is written to two lists in the run's folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.sources import records_in
from lcv.files import whole_file
from lcv.models.archive import read_checkpoint
from lcv.models.build import find, from_checkpoint, spec_of
from lcv.models.types import FlowModel
from lcv.train.config import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    SplitConfig,
    TrainConfig,
    changed,
)
from lcv.train.distributed import Processes
from lcv.train.validate import Judged, Validation

HELD_OUT = "held-out"
SHARE, MOST = 5, 40
LOOKED_AT = 64
SMALLEST, MULTIPLE = 128, 8


@dataclass(frozen=True)
class Budget:
    """What a device can do in reasonable time: the largest crop, pairs a step, steps, iterations."""

    crop: tuple[int, int]
    batch: int
    steps: int
    iters: int
    precision: str
    workers: int


BUDGETS = {
    "cuda": Budget((368, 768), 6, 2000, 12, "bf16", 4),
    "cpu": Budget((192, 256), 2, 100, 6, "float32", 0),
}


@dataclass(frozen=True)
class Plan:
    """The run, and the pairs that it trains on and is judged by."""

    config: TrainConfig
    train: tuple[Record, ...]
    held_out: tuple[Record, ...]

    def write_lists(self) -> None:
        """Leave both lists in the run's folder; lists of other pairs that are there are refused."""
        folder = Path(self.config.folder)
        for name, records in (("train", self.train), (HELD_OUT, self.held_out)):
            path, text = folder / f"{name}.txt", "".join(map(_line, records))
            if path.exists():
                if path.read_text(encoding="utf-8") != text:
                    raise FileError(
                        f"{path}: lists other pairs than this run would use; choose another --folder"
                    )
                continue
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8")


def make_plan(
    pairs: str | os.PathLike[str],
    weights: str | os.PathLike[str],
    model: str | None = None,
    folder: str = "runs/finetune",
    device: str = "cpu",
) -> Plan:
    """A short supervised run that suits the pairs and the device.

    pairs:   a list file, or the folder of a dataset
    weights: where to start: a file, or the name of embedded or published weights
    model:   a factory, for weights of a network of one's own; other files name their network
    """
    records = _listable(pairs)
    train, held_out = split(records)
    sides, holes = _look_at(records)
    network, _ = from_checkpoint(read_checkpoint(find(weights)), model)
    spec, defaults = spec_of(network), cast(FlowModel, network).defaults
    budget = BUDGETS["cuda" if device.startswith("cuda") else "cpu"]
    loss = next((name for name in defaults.losses if name != "unsupervised"), None)
    if loss is None:
        raise ArgumentError(f"{spec.name} cannot be trained with truth; wanted another network")
    settings: dict[str, Any] = {**defaults.finetuning, "loss.name": loss}
    settings.pop("data.recipe", None)  # of procedural pairs
    settings["model.options"] = {**spec.options, **settings.get("model.options", {})}
    kind = "elliptical" if spec.inner_product == "euclidean" else spec.inner_product
    size = tuple(
        max(SMALLEST, min(most, (side - MULTIPLE) // MULTIPLE * MULTIPLE))
        for side, most in zip(sides, budget.crop, strict=True)
    )
    config = TrainConfig(
        model=ModelConfig(spec.name, kind, weights=os.fspath(weights)),
        data=DataConfig(
            source="files",
            root=os.path.abspath(folder),
            parts=(PartConfig("list", "raft-kitti" if holes else "raft-sintel", root="train.txt"),),
            size=(size[0], size[1]),
            workers=budget.workers,
        ),
        optim=OptimConfig(lr=1e-4, weight_decay=1e-5),
        loss=LossConfig(iters=None if defaults.iters is None else budget.iters),
        steps=budget.steps,
        batch=min(budget.batch, len(train)),
        precision=budget.precision,
        folder=folder,
        log_every=max(1, budget.steps // 20),
        validate_every=max(1, budget.steps // 4),
        validation={HELD_OUT: SplitConfig("list", root=f"{HELD_OUT}.txt")},
        best=f"{HELD_OUT}/epe",
    )
    return Plan(changed(config, settings), train, held_out)


def split(records: Sequence[Record]) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The pairs to train on, and a fifth, at most 40, held out.

    Whole scenes are held out where there are several, the smallest and last first; else the last pairs. A
    pair that shares a frame with a held-out one is left out of both.
    """
    count = min(MOST, max(1, round(len(records) / SHARE)))
    sizes = Counter(record.scene for record in records)
    held: list[Record] = list(records[-count:])
    if len(sizes) > 1:
        held, place = [], {scene: k for k, scene in enumerate(sizes)}
        for scene in sorted(sizes, key=lambda name: (sizes[name], -place[name]))[:-1]:
            if len(held) < count:
                held += [record for record in records if record.scene == scene]
    seen = {frame for record in held for frame in (record.image1, record.image2)}
    train = [r for r in records if r.image1 not in seen and r.image2 not in seen]
    if not train:
        raise ArgumentError(
            f"{len(records)} pairs with truth leave none to train on when some are held out; wanted "
            f"at least two that share no frame"
        )
    return tuple(train), tuple(held)


def judge(
    config: TrainConfig, weights: str | os.PathLike[str] | None = None, device: str = "cpu"
) -> tuple[dict[str, float], list[Judged]]:
    """Metrics on the held-out pairs, and the first few of them, as the network sees them now.

    weights: by default those that the run starts from
    """
    model = config.model
    path = find(model.weights or "" if weights is None else weights)
    network, _ = from_checkpoint(read_checkpoint(path), model.name, model.inner_product)
    processes = Processes(0, 1, torch.device(device))
    shown: list[Judged] = []
    measure = Validation(replace(config, validate_every=1), processes)
    numbers = measure(network.to(processes.device), lambda _, pair: shown.append(pair))
    return {name.rpartition("/")[2]: value for name, value in numbers.items()}, shown


def _listable(pairs: str | os.PathLike[str]) -> list[Record]:
    """The pairs with truth, which have to be such that a list can name them."""
    records = []
    for record in records_in([pairs]):
        if not isinstance(record, Record) or record.step != 1 or record.disparity is not None:
            raise ArgumentError(
                f"{pairs}: the truth of {record.dataset}/{record.name} is not a plain flow file; "
                f"train on this dataset with a recipe (`lcv train --help`)"
            )
        records.append(record)
    return records


def _look_at(records: Sequence[Record]) -> tuple[tuple[int, int], bool]:
    """The smallest height and width, and whether any truth has holes, of up to 64 pairs."""
    step = -(-len(records) // LOOKED_AT)
    shapes, holes = [], False
    for record in records[::step]:
        sample = record.read(maps=False)
        assert sample.valid is not None
        shapes.append(sample.valid.shape)
        holes = holes or record.sparse or not sample.valid.all()
    heights, widths = zip(*shapes, strict=True)
    return (min(heights), min(widths)), holes


def _line(record: Record) -> str:
    words = [os.path.abspath(str(file)) for file in (record.image1, record.image2, record.flow)]
    quotes = ["'" if '"' in word else '"' for word in words]
    return " ".join(q + word + q for q, word in zip(quotes, words, strict=True)) + "\n"

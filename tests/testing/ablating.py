"""Small ablations: a base that trains in seconds, textures, and studies that were never run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lcv.data.formats.image import write_image
from lcv.data.synthetic.textures import is_held_out
from lcv.models.build import build
from lcv.models.cards import save_weights
from lcv.studies.ablation_base import network_for, paced, procedural_base
from lcv.studies.ablation_study import Study, prepare
from lcv.studies.columns import choose
from lcv.train.config import TrainConfig

SMALL_IMAGE = 64


def textures(folder: Path) -> Path:
    """Two pictures to train with and one that is held out."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    wanted = {True: 1, False: 2}
    while any(wanted.values()):
        coarse = generator.integers(0, 256, (SMALL_IMAGE // 4, SMALL_IMAGE // 4, 3), dtype=np.uint8)
        path = folder / f"{sum(wanted.values())}.png"
        write_image(path, coarse.repeat(4, 0).repeat(4, 1), overwrite=True)
        held_out = is_held_out(path)
        if wanted[held_out]:
            wanted[held_out] -= 1
        else:
            path.unlink()
    return folder


def weights(folder: Path) -> Path:
    """RAFT-small as it is born, without W; always the same."""
    path = folder / "born.safetensors"
    if not path.exists():
        torch.manual_seed(0)  # fixtures of a whole module come before each test's own seed
        save_weights(build("raft-small", "euclidean"), path)
    return path


def tiny_base(folder: Path, steps: int = 2, **changes) -> TrainConfig:
    """A run of RAFT-small at 64×64 whose weights and textures lie in the folder."""
    base = procedural_base("raft-small", str(weights(folder)))
    base = replace(
        base,
        data=replace(
            base.data, recipe="quick", size=(64, 64), ahead=1, textures=str(textures(folder / "t"))
        ),
        loss=replace(base.loss, iters=2),
        steps=steps,
        batch=1,
        precision="float32",
        validate_iters=2,
        **changes,
    )
    return paced(base, every=1)


def invented(
    folder: Path,
    values: dict[str, list[float]],
    pairs: int = 6,
    model: str = "raft-small",
    scenes: int | None = None,
) -> Study:
    """A study whose results are written down, not trained: mean EPE by column and seed.

    A pair's EPE is the mean times 0.5 … 1.5, the same for every column.
    """
    base = replace(procedural_base(model, None), steps=100)
    columns = tuple(c for c in choose(network_for(base.model), ["all"]) if c.name in values)
    seeds = range(max(map(len, values.values())))
    study = prepare(folder, paced(base), columns, tuple(seeds), pairs=pairs)
    shape = np.linspace(0.5, 1.5, pairs)
    for column in columns:
        for seed, mean in enumerate(values[column.name]):
            cell = study.cell(column.name, seed)
            test = {
                "metrics": {"epe": mean, "fl": 10 * mean, "px1": 50.0},
                "pairs": {
                    "names": [str(i) for i in range(pairs)],
                    "scenes": [str(i % (scenes or pairs)) for i in range(pairs)],
                    "epe": (mean * shape).tolist(),
                    "fl": [10 * mean] * pairs,
                },
            }
            result = {
                "format": "lcv ablation cell 1",
                "column": column.name,
                "seed": seed,
                "best": {"step": 50, "tests": {"procedural": test}, "W": {}},
                "last": {"step": 100, "tests": {"procedural": test}, "W": {}},
                "seconds": 1.0,
                "provenance": {"lcv": "0", "device": "none"},
            }
            path = study.folder_of(cell)
            path.mkdir(parents=True, exist_ok=True)
            (path / "result.json").write_text(json.dumps(result))
            steps = (50, 100)
            entries = [
                {"kind": "validation", "step": step, "validation/epe": mean * 100 / step}
                for step in steps
            ]
            lines = "".join(json.dumps(entry) + "\n" for entry in entries)
            (path / "log.jsonl").write_text(lines)
    return study

"""One cell of the ablation, a column with a seed: train, measure best and last, keep little.

    python -m lcv.studies.ablation_cell STUDY COLUMN SEED [--weights FILE] [--device cuda]

A cell is a training run in a folder of its own and resumes like one. Once it is measured, its
checkpoints go; what stays is its log, result.json and, unless told otherwise, the best weights in
half precision.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcv.errors import LcvError
from lcv.files import only_one, whole_file
from lcv.inner_product import InnerProduct, Spectral
from lcv.inner_product.interpret import summarise
from lcv.models.cards import Card, save_weights
from lcv.provenance import provenance
from lcv.studies.ablation_measure import measure
from lcv.studies.ablation_study import Cell, Study, read_study
from lcv.studies.columns import config_for
from lcv.train.checkpoint import Folder, read
from lcv.train.config import TrainConfig
from lcv.train.distributed import join
from lcv.train.kept import Kept
from lcv.train.log import Listener
from lcv.train.loop import run as run_training
from lcv.train.network import make_model

INTERRUPTED = 130


def run_cell(
    study: Study, cell: Cell, device: str | None = None, listeners: tuple[Listener, ...] = ()
) -> bool:
    """Take a cell to its end, or as far as it came when it was interrupted; whether it is done.

    Whoever else wants the same cell waits, and then finds it done.
    """
    folder = study.folder_of(cell)
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder / "cell"):
        if study.result(cell) is not None:
            return True
        began = time.perf_counter()
        config = config_for(cell.column, study.base, cell.seed, folder)
        if cell.column.trained:
            model = run_training(config, "auto", device, listeners)
            if _steps_done(folder) < config.steps:
                lighten(folder)
                return False
        else:
            model = untrained(config)
        conclude(study, cell, model, join(device).device, began)
    return True


def untrained(config: TrainConfig) -> nn.Module:
    """The network that a run begins with."""
    torch.manual_seed(config.seed)  # as a run does, should there be no weights
    return make_model(config)[0]


def conclude(
    study: Study,
    cell: Cell,
    model: nn.Module,
    device: torch.device,
    began: float,
    kept: Kept | None = None,
) -> None:
    """Measure a cell at its best and last checkpoint, write its result, and remove what it needs
    no longer. began: when it did, by the clock; kept: see `measure`."""
    folder = study.folder_of(cell)
    model.to(device)
    last = study.base.steps if cell.column.trained else 0
    checkpoints = {"last": (last, model.state_dict())}
    best = Folder(folder).path("best")
    if best.exists():
        content = read(best)
        state = content.get("average", content["model"])
        checkpoints = {"best": (content["step"], state), **checkpoints}
    result = _measured(study, cell, model, checkpoints, device, kept)
    result["seconds"] = round(time.perf_counter() - began, 1)
    result["provenance"] = provenance(study.weights(), device=device)
    _keep(study, cell, model, result)
    with whole_file(folder / "result.json", overwrite=True) as temporary:
        temporary.write_text(json.dumps(result) + "\n", encoding="utf-8")
    (folder / "failure.txt").unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _steps_done(folder: Path) -> int:
    newest = Folder(folder).newest()
    return 0 if newest is None else int(newest[1]["step"])


def _measured(
    study: Study,
    cell: Cell,
    model: nn.Module,
    checkpoints: dict[str, tuple[int, dict[str, Any]]],
    device: torch.device,
    kept: Kept | None = None,
) -> dict[str, Any]:
    """The numbers at each checkpoint, and last of all the best one's weights in the model."""
    result: dict[str, Any] = {
        "format": "lcv ablation cell 1",
        "column": cell.column.name,
        "seed": cell.seed,
    }
    measured: dict[int, Any] = {}
    for name in reversed(checkpoints):
        step, state = checkpoints[name]
        if step not in measured:
            state = {key: value.clone() for key, value in state.items()}
            model.load_state_dict(state)
            tests = measure(model, study.base, study.tests, study.pairs, device, kept)
            measured[step] = {"step": step, "tests": tests, "W": w_numbers(model)}
        result[name] = measured[step]
    result.setdefault("best", result["last"])
    return result


@torch.no_grad()
def w_numbers(model: nn.Module) -> dict[str, Any]:
    """Each W by its name: how far from I, and where it has them its eigenvalues and turn."""
    numbers: dict[str, Any] = {}
    for name, product in model.named_modules():
        if not isinstance(product, InnerProduct):
            continue
        W = product.matrix().double().cpu()
        eye = torch.eye(len(W), dtype=W.dtype)
        numbers[name] = {"distance": float((W - eye).norm() / eye.norm())}
        if isinstance(product, Spectral):
            summary = summarise(W, product.rotation().cpu())
            numbers[name] |= {
                "eigenvalues": [round(float(value), 6) for value in summary.eigenvalues],
                "largest_angle": float(summary.angles[-1]),
            }
    return numbers


def _keep(study: Study, cell: Cell, model: nn.Module, result: dict[str, Any]) -> None:
    """Half-precision weights of the best checkpoint in place of the run's own; or none."""
    folder = study.folder_of(cell)
    for leftover in ("weights.safetensors", "weights.json"):
        (folder / leftover).unlink(missing_ok=True)
    if not (study.keep and cell.column.trained):
        return
    data = study.base.data
    card = Card(
        data=data.recipe if data.source == "procedural" else "held-out split of the study",
        recipe=f"ablation, column {cell.column.name}, step {result['best']['step']}",
        seed=cell.seed,
        scores={name: test["metrics"] for name, test in result["best"]["tests"].items()},
        notes=["float16; the scores were measured before rounding"],
    )
    save_weights(model, folder / "weights.safetensors", card, half=True, overwrite=True)


def lighten(folder: Path) -> None:
    """Of an interrupted cell keep what resuming needs: the last checkpoint and the best weights."""
    checkpoints = Folder(folder)
    if not checkpoints.path("last").exists():
        return
    checkpoints.path("previous").unlink(missing_ok=True)
    best = checkpoints.path("best")
    if not best.exists():
        return
    content = read(best)
    if content.pop("optimisers", None) is not None:
        with whole_file(best, overwrite=True) as temporary, temporary.open("wb") as file:
            torch.save(content, file)


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 done, 130 interrupted and saved, 2 an error, then told in failure.txt."""
    parser = argparse.ArgumentParser(prog="python -m lcv.studies.ablation_cell")
    parser.add_argument("study")
    parser.add_argument("column")
    parser.add_argument("seed", type=int)
    parser.add_argument("--weights")
    parser.add_argument("--device")
    words = parser.parse_args(arguments)
    study = read_study(words.study)
    cell = study.cell(words.column, words.seed)
    if study.result(cell) is not None:
        return 0
    try:
        study = study.with_weights(words.weights)
        return 0 if run_cell(study, cell, words.device) else INTERRUPTED
    except KeyboardInterrupt:  # in its last step, or while it was measured
        return INTERRUPTED
    except LcvError as error:
        note_failure(study.folder_of(cell), error)
        return 2


def note_failure(folder: Path, error: LcvError) -> None:
    """Why a cell failed, for the table; a later run tries again."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / "failure.txt", overwrite=True) as temporary:
        temporary.write_text(f"{error}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

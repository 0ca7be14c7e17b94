"""One cell of the ablation, a column with a seed: measure it when it is trained, and tidy up.

A cell is a training run in its own folder. Once it is measured its checkpoints are removed; its log,
result.json and, unless told otherwise, the best weights in half precision stay.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcv.errors import LcvError
from lcv.files import write_text
from lcv.inner_product import InnerProduct, Spectral
from lcv.inner_product.interpret import summarise
from lcv.models.cards import Card, save_weights
from lcv.provenance import provenance
from lcv.studies.ablation_measure import measure
from lcv.studies.ablation_study import Cell, Study
from lcv.train.checkpoint import Folder, read
from lcv.train.config import TrainConfig
from lcv.train.kept import Kept
from lcv.train.network import make_model


def untrained(config: TrainConfig) -> nn.Module:
    """The network that a run starts with."""
    torch.manual_seed(config.seed)  # as a run does, in case there are no weights
    return make_model(config)[0]


def measure_cell(
    study: Study, cell: Cell, model: nn.Module, device: torch.device, began: float, kept: Kept
) -> None:
    """Measure a cell at its best and last checkpoint, write result.json, and remove checkpoints.

    model: with the last weights; began: when the cell started, by `time.perf_counter`
    kept:  the test pairs, see `measure`
    """
    folder = study.folder_of(cell)
    model.to(device)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    checkpoints = {"last": (study.base.steps if cell.column.trained else 0, state)}
    best = Folder(folder).path("best")
    if best.exists():
        content = read(best)
        checkpoints["best"] = content["step"], content.get("average", content["model"])
    result: dict[str, Any] = {"format": "lcv ablation cell 1"}
    result |= {"column": cell.column.name, "seed": cell.seed}
    for name, (step, state) in checkpoints.items():
        if name == "best" and step == result["last"]["step"]:
            continue
        model.load_state_dict(state)
        tests = measure(model, study.base, study.tests, study.pairs, device, kept)
        result[name] = {"step": step, "tests": tests, "W": w_numbers(model)}
    result.setdefault("best", result["last"])
    result["seconds"] = round(time.perf_counter() - began, 1)
    result["provenance"] = provenance(study.weights(), device=device)
    _keep_weights(study, cell, model, result)
    write_text(folder / "result.json", json.dumps(result) + "\n", overwrite=True)
    (folder / "failure.txt").unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


@torch.no_grad()
def w_numbers(model: nn.Module) -> dict[str, Any]:
    """For each W its distance from I, and where it has them its eigenvalues and largest angle."""
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


def _keep_weights(study: Study, cell: Cell, model: nn.Module, result: dict[str, Any]) -> None:
    """Replace the run's own weights by the best ones in half precision, or by none."""
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


def note_failure(folder: Path, error: LcvError) -> None:
    """Why a cell failed, for the table; a later run tries again."""
    write_text(folder / "failure.txt", f"{error}\n", overwrite=True)

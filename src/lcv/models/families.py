"""Write a network's weights for others to read: under the names of its authors or torchvision's.

A file says by its ending what it is: `.safetensors` is ours; `.pth` and `.tar` are torch files for
the code of RAFT's and VCN's authors, or torchvision's; `.npz` is DDFlow's TensorFlow variables by
name. A card lies beside each. Only DDFlow's variables have a place for W.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, WeightsError
from lcv.files import check_output, whole_file
from lcv.models.archive import Checkpoint
from lcv.models.build import from_checkpoint, spec_of
from lcv.models.cards import Card, card_path, in_half, save_weights, write_card
from lcv.models.ddflow import DDFlow
from lcv.models.ddflow.names import to_tensorflow
from lcv.models.raft import RAFT
from lcv.models.raft.names import to_authors_names, to_torchvision_names
from lcv.models.vcn import VCN
from lcv.models.vcn.names import to_authors
from lcv.models.weights import model_of

FAMILIES = ("lcv", "authors", "torchvision")
BY_ENDING = {".safetensors": "lcv", ".pth": "authors", ".tar": "authors", ".npz": "authors"}


def as_found(checkpoint: Checkpoint) -> tuple[nn.Module, list[str]]:
    """The network of a checkpoint as it is: with its W, or without one if it has none."""
    kind = model_of(checkpoint).inner_product or "euclidean"
    return from_checkpoint(checkpoint, inner_product=kind)


def write_weights(
    model: nn.Module,
    path: str | os.PathLike[str],
    family: str | None = None,
    card: Card | None = None,
    half: bool = False,
    overwrite: bool = False,
) -> None:
    """Write under a family's names; by default ours for `.safetensors`, else the authors'."""
    path = Path(path)
    if path.suffix not in BY_ENDING:
        raise ArgumentError(f"{path}: wanted a name ending in .safetensors, .pth, .tar or .npz")
    family = family or BY_ENDING[path.suffix]
    if family not in FAMILIES:
        raise ArgumentError(f"unknown family {family!r}; there are {', '.join(FAMILIES)}")
    endings = _endings(model, family)
    if path.suffix not in endings:
        raise ArgumentError(
            f"{path}: the names of {family} are written to a {' or '.join(endings)} file for "
            f"{spec_of(model).name}"
        )
    if family == "lcv":
        save_weights(model, path, card, half=half, overwrite=overwrite)
        return
    check_output(path, overwrite)
    check_output(card_path(path), overwrite)
    state = _renamed(model, family)
    if half:
        state = in_half(state)
    with whole_file(path, overwrite) as temporary, temporary.open("wb") as file:
        if isinstance(model, DDFlow):
            np.savez(file, **{name: value.numpy() for name, value in state.items()})  # type: ignore[arg-type]
        else:
            torch.save(_as_authors_load(model, family, state), file)
    write_card(model, path, card, half, overwrite)


def _endings(model: nn.Module, family: str) -> tuple[str, ...]:
    if family == "lcv":
        return (".safetensors",)
    if family == "authors" and isinstance(model, RAFT | VCN):
        return (".pth", ".tar")
    if family == "authors" and isinstance(model, DDFlow):
        return (".npz",)
    if isinstance(model, RAFT):
        return (".pth",)
    raise WeightsError(f"there are no names of {family} for {type(model).__name__}")


def _renamed(model: nn.Module, family: str) -> dict[str, Tensor]:
    kind = spec_of(model).inner_product
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    if isinstance(model, DDFlow):
        if kind not in ("euclidean", "elliptical"):
            raise WeightsError(
                f"DDFlow's variables have a place for an elliptical W or none, not for `{kind}`. "
                f"Keep these weights as .safetensors."
            )
        return to_tensorflow(state)
    if kind != "euclidean":
        advice = (
            "take it out first with `lcv fold`, which changes no flow"
            if isinstance(model, RAFT)
            else "keep these weights as .safetensors, since this network cannot be folded"
        )
        raise WeightsError(f"the code of others has no place for W (`{kind}`): {advice}")
    if isinstance(model, VCN):
        return to_authors(state)
    return (to_torchvision_names if family == "torchvision" else to_authors_names)(state)


def _as_authors_load(model: nn.Module, family: str, state: dict[str, Tensor]) -> dict[str, Any]:
    """What others' scripts expect in a torch file; the authors' read into DataParallel."""
    if family == "torchvision":
        return dict(state)
    prefixed = {f"module.{name}": value for name, value in state.items()}
    if not isinstance(model, VCN):
        return dict(prefixed)
    means = {"mean_L": [model.mean1.tolist()], "mean_R": [model.mean2.tolist()]}
    return {"state_dict": prefixed, **means}

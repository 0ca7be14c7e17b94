"""Write a network's weights for others to read: under the names of RAFT's authors or torchvision's.

A file says by its ending what it is: `.safetensors` is ours, with a card beside it; `.pth` is a
plain state_dict for the code of others, which knows no W.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, WeightsError
from lcv.files import whole_file
from lcv.models.archive import Checkpoint
from lcv.models.build import from_checkpoint, spec_of
from lcv.models.cards import Card, save_weights
from lcv.models.raft import RAFT
from lcv.models.raft.names import to_authors_names, to_torchvision_names
from lcv.models.weights import holds_w, model_of

FAMILIES = ("lcv", "authors", "torchvision")


def as_found(checkpoint: Checkpoint) -> tuple[nn.Module, list[str]]:
    """The network of a checkpoint as it is: with its W, or without one if it has none."""
    kind = model_of(checkpoint).inner_product
    if kind is None:
        kind = "elliptical" if holds_w(checkpoint) else "euclidean"
    return from_checkpoint(checkpoint, inner_product=kind)


def write_weights(
    model: nn.Module,
    path: str | os.PathLike[str],
    family: str | None = None,
    card: Card | None = None,
    half: bool = False,
    overwrite: bool = False,
) -> None:
    """Write under a family's names; by default ours for `.safetensors`, the authors' for `.pth`."""
    path = Path(path)
    endings = {".safetensors": "lcv", ".pth": "authors"}
    if path.suffix not in endings:
        raise ArgumentError(f"{path}: wanted a name ending in .safetensors or .pth")
    family = family or endings[path.suffix]
    if family not in FAMILIES:
        raise ArgumentError(f"unknown family {family!r}; there are {', '.join(FAMILIES)}")
    if (family == "lcv") != (path.suffix == ".safetensors"):
        raise ArgumentError(
            f"{path}: the names of {family} are written to a "
            f"{'.safetensors' if family == 'lcv' else '.pth'} file"
        )
    if family == "lcv":
        save_weights(model, path, card, half=half, overwrite=overwrite)
        return
    state = _for_others(model, family)
    if half:
        state = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
    with whole_file(path, overwrite) as temporary:
        torch.save(state, temporary)


def _for_others(model: nn.Module, family: str) -> dict[str, Tensor]:
    if not isinstance(model, RAFT):
        raise WeightsError(f"only RAFT has names of {family}, not {type(model).__name__}")
    if list(model.inner_product.parameters()):
        kind = spec_of(model).inner_product
        raise WeightsError(
            f"the code of others has no place for W (`{kind}`): take it out first with `lcv fold`, "
            f"which changes no flow"
        )
    if family == "torchvision":
        return to_torchvision_names(model.state_dict())
    # The authors' scripts read into DataParallel, so they expect its prefix.
    named = to_authors_names(model.state_dict())
    return {f"module.{name}": value for name, value in named.items()}

"""Write a network's weights for others to read: under the names of one of its families.

A file's ending says what it is: `.safetensors` is ours; `.pth` and `.tar` are torch files for the
code of RAFT's and VCN's authors, or torchvision's; `.npz` is DDFlow's TensorFlow variables by name.
A card lies beside each.
"""

from __future__ import annotations

import copy
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
from lcv.models.registry import NETWORKS
from lcv.models.types import Family, is_flow_model
from lcv.models.weights import model_of

BY_ENDING = {".safetensors": "lcv", ".pth": "authors", ".tar": "authors", ".npz": "authors"}


def family_names() -> list[str]:
    """The families that weights can be written in, ours first."""
    families = (family for entry in NETWORKS.values() for family in entry.names)
    return ["lcv", *dict.fromkeys(each.name for each in families if each.write)]


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
    if family not in family_names():
        raise ArgumentError(f"unknown family {family!r}; there are {', '.join(family_names())}")
    chosen = None if family == "lcv" else _family_of(model, family)
    endings = (".safetensors",) if chosen is None else chosen.endings
    if path.suffix not in endings:
        raise ArgumentError(
            f"{path}: the names of {family} are written to a {' or '.join(endings)} file for "
            f"{spec_of(model).name}"
        )
    if chosen is None:
        save_weights(model, path, card, half=half, overwrite=overwrite)
        return
    check_output(path, overwrite)
    check_output(card_path(path), overwrite)
    content = _content(model, chosen, half)
    with whole_file(path, overwrite) as temporary, temporary.open("wb") as file:
        if path.suffix == ".npz":
            np.savez(file, **{name: value.numpy() for name, value in content.items()})
        else:
            torch.save(content, file)
    write_card(model, path, card, half, overwrite)


def _family_of(model: nn.Module, name: str) -> Family:
    known: tuple[Family, ...] = model.names if is_flow_model(model) else ()
    for family in known:
        if family.name == name and family.write is not None:
            return family
    raise WeightsError(f"there are no names of {name} for {spec_of(model).name}")


def _content(model: Any, family: Family, half: bool) -> dict[str, Any]:
    """What the family's readers expect in a file."""
    kind = spec_of(model).inner_product
    if kind not in family.holds_w:
        advice = (
            "take it out first with `lcv fold`, which changes no flow"
            if model.layer_before_w() is not None
            else "keep these weights as .safetensors, since this network cannot be folded"
        )
        held = ", ".join(f"`{each}`" for each in family.holds_w if each != "euclidean")
        place = f"a place for {held} alone, not for W" if held else "no place for W"
        raise WeightsError(f"files of this family have {place} (`{kind}`): {advice}")
    assert family.write is not None
    content = family.write(copy.deepcopy(model).cpu())
    return _halved(content) if half else content


def _halved(content: dict[str, Any]) -> dict[str, Any]:
    tensors = in_half({k: v for k, v in content.items() if isinstance(v, Tensor)})
    inner = {k: _halved(v) for k, v in content.items() if isinstance(v, dict)}
    return {**content, **tensors, **inner}

"""Whose weights a file holds, and how they become ours.

Families: RAFT's authors (ptlflow's files bear the same names), torchvision, VCN's authors,
DDFlow's TensorFlow variables, our own files, and the bare state_dict of a network of ours. A
missing W means W = I and is said; anything else missing, extra or of another shape is one error
that lists it all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import WeightsError
from lcv.models.archive import Checkpoint, listing, untrusted
from lcv.models.ddflow import names as ddflow_names
from lcv.models.raft import names as raft_names
from lcv.models.registry import read_spec
from lcv.models.vcn import names as vcn_names

OWN_KEY = "lcv"  # the entry of a safetensors header that holds our description of the model

KINDS = {
    frozenset({"S_upper", "t"}): "elliptical",
    frozenset({"raw_P", "raw_D"}): "elliptical",
    frozenset({"t"}): "diagonal",
    frozenset({"S_upper"}): "rotation",
    frozenset({"W"}): "free",
    frozenset({"R"}): "gram",
    frozenset({"P", "t"}): "riemannian",
}
"""The kind of inner product by its parameters' names."""

State = dict[str, Tensor]


@dataclass(frozen=True)
class Found:
    """What a file says of its model. `inner_product` is None where it has no W that is known.

    family: "lcv" (our file), "bare" (our names, no description), "raft", "torchvision", "vcn" or
    "ddflow" (those of the authors)
    """

    name: str
    family: str
    inner_product: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def model_of(checkpoint: Checkpoint) -> Found:
    """Which network, and which family of names, a checkpoint is of."""
    if checkpoint.kind == "safetensors" and OWN_KEY in checkpoint.extras:
        said = read_spec(checkpoint.extras[OWN_KEY], checkpoint.path)
        return Found(said.name, "lcv", said.inner_product, said.options)
    state = checkpoint.state
    kind = _kind_of_w(state)
    if raft_names.is_authors(state):
        return Found(_raft(state, "fnet.conv2.weight", checkpoint), "raft", kind)
    if raft_names.is_torchvision(state):
        return Found(_raft(state, "feature_encoder.conv.weight", checkpoint), "torchvision", kind)
    if "f6.proj.0.conv1.weight" in state:
        name = "vcn" if "f2.proj.0.conv1.weight" in state else "vcn-small"
        return Found(name, "vcn", kind)
    if any(key.startswith("feature_extractor/conv1_1/weights") for key in state):
        return Found("ddflow", "ddflow", kind)
    if "levels.6.filter.project.conv.weight" in state:
        name = "vcn" if any(key.startswith("levels.2.") for key in state) else "vcn-small"
        heads = any(".out_of_range." in key for key in state)
        options: dict[str, Any] = {"heads": True} if heads else {}
        if kind == "free":  # the one form it has, and not VCN's default
            options["form"] = "left"
        return Found(name, "bare", kind, options)
    if "estimators.6.conv1.weight" in state:
        return Found("ddflow", "bare", kind)
    raise WeightsError(
        f"{checkpoint.path}: no known network has these {len(state)} names: "
        f"{', '.join(sorted(state)[:4])} … Known are RAFT (the authors', torchvision's and "
        f"ptlflow's names), VCN, DDFlow and files written by lcv."
    )


def _kind_of_w(state: State) -> str | None:
    """The kind of W by its parameters' names, those of all levels taken together."""
    leaves = {
        name.removesuffix(":0").replace("/", ".").rpartition(".")[2]
        for name in state
        if _is_of_w(name) or "raw_P" in name or "raw_D" in name
    }
    return KINDS.get(frozenset(leaves))


def _raft(state: State, last_convolution: str, checkpoint: Checkpoint) -> str:
    if last_convolution not in state:
        raise WeightsError(f"{checkpoint.path}: RAFT's names, but no {last_convolution} among them")
    return "raft-small" if state[last_convolution].shape[:1] == (128,) else "raft-large"


def to_ours(checkpoint: Checkpoint, model: nn.Module) -> tuple[State, list[str]]:
    """The checkpoint's tensors under our names, and what there is to say about them."""
    found = model_of(checkpoint)
    state, family = checkpoint.state, found.family
    own_names = [name for name in model.state_dict() if not _is_of_w(name)]
    if family == "raft":
        ours, notes = raft_names.from_authors_names(state)
        return ours, notes + _said_by_names(found)
    if family == "torchvision":
        return raft_names.from_torchvision_names(state, own_names), []
    if family == "vcn":
        has_heads = any(".out_of_range." in name for name in own_names)
        ours = vcn_names.from_authors(state, heads=has_heads)
        notes = []
        if not has_heads and any("_convo." in name for name in state):
            notes.append("the out-of-range heads, used in training only, were left out")
        if "mean_L" in checkpoint.extras:
            ours |= vcn_names.means_from_authors(checkpoint.extras)
        else:
            ours |= {name: getattr(model, name) for name in ("mean1", "mean2")}
            notes.append("no colour means in the file: 0.33 is assumed for every channel")
        return ours, notes
    if family == "ddflow":
        return ddflow_names.from_tensorflow(state), []
    return dict(state), _said_by_names(found) if family == "bare" else []


def _said_by_names(found: Found) -> list[str]:
    """What is worth saying of a bare state_dict: what its names tell, and what they cannot."""
    notes = []
    if found.inner_product not in (None, "elliptical"):
        notes.append(f"W is `{found.inner_product}`, judging by its parameters' names")
    if found.name.startswith("vcn"):
        notes.append("names do not say form, md and fac: those asked for, or the defaults, hold")
    return notes


def fit(model: nn.Module, checkpoint: Checkpoint) -> list[str]:
    """Fill the model; returns what there is to say. Refuses whatever does not fit, all at once."""
    with untrusted(checkpoint.path, "its tensors cannot be brought under our names"):
        state, notes = to_ours(checkpoint, model)
    wanted = model.state_dict()
    missing = [name for name in wanted if name not in state]
    of_w = [name for name in wanted if _is_of_w(name)]
    if of_w and not any(name in state for name in of_w):
        missing = [name for name in missing if not _is_of_w(name)]
        notes.append("no W in the file: it starts at W = I, which changes nothing until trained")
    faults = [f"{name} is missing" for name in missing]
    for name, value in state.items():
        if name not in wanted:
            faults.append(f"{name} {tuple(value.shape)} is not part of the model")
        elif value.shape != wanted[name].shape:
            faults.append(f"{name} is {tuple(value.shape)}, wanted {tuple(wanted[name].shape)}")
        elif value.is_floating_point() != wanted[name].is_floating_point():
            faults.append(f"{name} is {value.dtype}, wanted {wanted[name].dtype}")
    if faults:
        raise WeightsError(
            f"{checkpoint.path}: {len(faults)} of its entries do not fit the model: "
            f"{listing(faults)}"
        )
    with torch.no_grad():
        model.load_state_dict(state, strict=False)
    return [f"{checkpoint.path.name}: {note}" for note in notes]


def _is_of_w(name: str) -> bool:
    return name.startswith(("inner_product.", "inner_products."))

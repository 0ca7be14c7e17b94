"""Whose weights a file holds, and how they become ours.

A file is ours (its header describes the network), or of a family that a network knows: its authors'
names, torchvision's, and so on. A missing W means W = I and is noted; anything else missing, extra
or of another shape is one error that lists it all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from lcv.errors import WeightsError
from lcv.models.archive import Checkpoint, listing, untrusted
from lcv.models.registry import NETWORKS, read_spec
from lcv.models.types import Family, State

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


@dataclass(frozen=True)
class Found:
    """What a file says of its model. `inner_product` is None where it has no W that is known.

    family: None for a file of ours;  source: the hash of the factory's source that it names
    """

    name: str
    family: Family | None
    inner_product: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    source: str | None = None


def model_of(checkpoint: Checkpoint) -> Found:
    """Which network, and which family of names, a checkpoint is of."""
    found = own_description(checkpoint)
    if found is not None:
        return found
    families = dict.fromkeys(family for entry in NETWORKS.values() for family in entry.names)
    for family in families:
        try:
            named = family.recognise(checkpoint.state)
        except WeightsError as error:
            raise WeightsError(f"{checkpoint.path}: {error}") from None
        if named is not None:
            return Found(named.network, family, kind_of_w(checkpoint.state), named.options)
    raise WeightsError(
        f"{checkpoint.path}: no known network has these {len(checkpoint.state)} names: "
        f"{', '.join(sorted(checkpoint.state)[:4])} … Known are {', '.join(NETWORKS)} under their "
        f"authors' names, torchvision's and ptlflow's RAFT, and files written by lcv. For a network "
        f"of your own, name its factory as the model."
    )


def own_description(checkpoint: Checkpoint) -> Found | None:
    """What a file of ours says of its network; None for files of others."""
    if checkpoint.kind != "safetensors" or OWN_KEY not in checkpoint.extras:
        return None
    spec = read_spec(checkpoint.extras[OWN_KEY], checkpoint.path)
    return Found(spec.name, None, spec.inner_product, spec.options, spec.source)


def kind_of_w(state: State) -> str | None:
    """The kind of W by its parameters' names, those of all levels taken together."""
    leaves = {
        name.removesuffix(":0").replace("/", ".").rpartition(".")[2]
        for name in state
        if _is_of_w(name) or "raw_P" in name or "raw_D" in name
    }
    return KINDS.get(frozenset(leaves))


def to_ours(checkpoint: Checkpoint, model: nn.Module) -> tuple[State, list[str]]:
    """The checkpoint's tensors under our names, and notes for the user."""
    found = model_of(checkpoint)
    if found.family is None:
        return dict(checkpoint.state), []
    ours, notes = found.family.read(checkpoint.state, checkpoint.extras, model)
    if found.inner_product not in (None, "elliptical"):
        notes = [f"W is `{found.inner_product}`, judging by its parameters' names", *notes]
    return ours, notes


def fit(model: nn.Module, checkpoint: Checkpoint) -> list[str]:
    """Fill a network of the package; returns notes. Refuses whatever does not fit, all at once."""
    with untrusted(checkpoint.path, "its tensors cannot be brought under our names"):
        state, notes = to_ours(checkpoint, model)
    return fill(model, state, checkpoint, notes)


def fill(model: nn.Module, state: State, checkpoint: Checkpoint, notes: list[str]) -> list[str]:
    """Fill any network with tensors under its own names; W may be missing, nothing else."""
    wanted = model.state_dict()
    missing = [name for name in wanted if name not in state]
    of_w = [name for name in wanted if _is_of_w(name)]
    if of_w and not any(name in state for name in of_w):
        missing = [name for name in missing if not _is_of_w(name)]
        notes = [
            *notes,
            "no W in the file: it starts at W = I, which changes nothing until trained",
        ]
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
    """`inner_product.t`, `inner_products.6.t`, or beside a foreign network `inner_products.fnet.t`."""
    return re.search(r"(^|\.)inner_products?\.", name) is not None

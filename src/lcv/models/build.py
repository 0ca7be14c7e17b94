"""Networks by name: with random weights (`build`), or with a file's (`load`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from torch import nn

from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models.archive import Checkpoint, read_checkpoint
from lcv.models.ddflow import ddflow
from lcv.models.published import PUBLISHED, fetch
from lcv.models.raft import raft_large, raft_small
from lcv.models.vcn import vcn, vcn_small
from lcv.models.weights import fit, model_of

BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "raft-large": raft_large,
    "raft-small": raft_small,
    "vcn": vcn,
    "vcn-small": vcn_small,
    "ddflow": ddflow,
}

logger = logging.getLogger("lcv")


@dataclass(frozen=True)
class Spec:
    """How to build a network again: enough to be written into a file beside its weights."""

    name: str
    inner_product: str = "elliptical"
    options: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def build(name: str, inner_product: str = "elliptical", **options: Any) -> nn.Module:
    """A network with random weights and, with LCV, W = I.

    name: a key of BUILDERS;  inner_product: a key of INNER_PRODUCTS;  options: `form`, and what
    the network's own builder takes (`md`, `fac`, `heads` for VCN)
    """
    if name not in BUILDERS:
        raise ArgumentError(f"unknown model {name!r}; there are {', '.join(BUILDERS)}")
    try:
        model = BUILDERS[name](inner_product=inner_product, **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ArgumentError(f"{name}: {str(error).partition('() ')[2]}") from None
    cast(Any, model).spec = Spec(name, inner_product, options)
    return model


def spec_of(model: nn.Module) -> Spec:
    """How a network that `build` or `load` made can be built again."""
    spec = getattr(model, "spec", None)
    if not isinstance(spec, Spec):
        raise ArgumentError(f"this {type(model).__name__} was not made by lcv.build or lcv.load")
    return spec


def load(
    name: str,
    weights: str | os.PathLike[str] | None = None,
    inner_product: str | None = None,
    **options: Any,
) -> nn.Module:
    """A network with trained weights, in evaluation mode.

    weights: a file of any family that `lcv.models.weights` knows, or the name of a published
             checkpoint, which is then fetched
    inner_product, options: as for `build`; by default what the file says, else "elliptical"
    """
    if name not in BUILDERS:
        raise ArgumentError(f"unknown model {name!r}; there are {', '.join(BUILDERS)}")
    if weights is None:
        raise WeightsError(
            f"{name}: this version embeds no weights yet; give weights=FILE, or the name of a "
            f"published checkpoint ({', '.join(PUBLISHED)})"
        )
    model, notes = from_checkpoint(read_checkpoint(find(weights)), name, inner_product, **options)
    for note in notes:
        logger.warning("%s", note)
    return model


def from_checkpoint(
    checkpoint: Checkpoint,
    name: str | None = None,
    inner_product: str | None = None,
    **options: Any,
) -> tuple[nn.Module, list[str]]:
    """The network that a checkpoint is for, filled with it, and what there is to say about it."""
    found = model_of(checkpoint)
    if name is not None and name != found.name:
        raise WeightsError(
            f"{checkpoint.path}: these are weights of {found.name}, wanted those of {name}. "
            f"Ask for model {found.name!r} or give another file."
        )
    kind = inner_product or found.inner_product or "elliptical"
    model = build(found.name, kind, **{**found.options, **options})
    notes = fit(model, checkpoint)
    return model.eval(), notes


def find(weights: str | os.PathLike[str]) -> Path:
    """The file behind a path or behind the name of a published checkpoint."""
    path = Path(weights)
    if path.exists():
        return path
    if str(weights) in PUBLISHED:
        return fetch(str(weights))
    hint = f"; did you mean the published {path.stem!r}?" if path.stem in PUBLISHED else ""
    raise FileError(f"{path}: there is no such file, nor a published checkpoint of that name{hint}")

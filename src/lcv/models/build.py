"""Networks by name: with random weights (`build`), or with a file's (`load`)."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models.archive import Checkpoint, read_checkpoint
from lcv.models.embedded import EMBEDDED, embedded_file
from lcv.models.published import PUBLISHED, fetch
from lcv.models.registry import (
    BUILDERS,
    Spec,
    check_inner_product,
    check_name,
    check_options,
    plain,
)
from lcv.models.weights import Found, fit, model_of
from lcv.words import did_you_mean

__all__ = ["BUILDERS", "Spec", "build", "find", "from_checkpoint", "load", "spec_of"]

logger = logging.getLogger("lcv")


def build(name: str, inner_product: str = "elliptical", **options: Any) -> nn.Module:
    """A network with random weights and, with LCV, W = I.

    name: a key of BUILDERS;  inner_product: a key of INNER_PRODUCTS;  options: `form`, and what
    the network's own builder takes (`md`, `fac`, `heads` for VCN)
    """
    check_name(name)
    check_inner_product(inner_product)
    check_options(name, options)
    options = {key: plain(value, key) for key, value in options.items()}
    model = BUILDERS[name](inner_product=inner_product, **options)
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

    name:    a key of BUILDERS or, for the weights that come with the package, of EMBEDDED
    weights: a file of any family that `lcv.models.weights` knows, or the name of a published
             checkpoint, which is then fetched, or of embedded ones, which are the default
    inner_product, options: as for `build`; by default what the file says, else "elliptical"
    """
    if isinstance(name, str) and name in EMBEDDED:
        if weights is None:
            name, weights = EMBEDDED[name], embedded_file(name)
        elif isinstance(weights, str) and weights == name:  # its own, said twice
            name = EMBEDDED[name]
    check_name(name, embedded=weights is None)
    check_options(name, options)
    if inner_product is not None:
        check_inner_product(inner_product)
    if weights is None:
        raise WeightsError(
            f"{name}: no weights of this network come with the package (there are those of "
            f"{', '.join(EMBEDDED)}); give weights=FILE, a checkpoint of {name}"
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
    found = found_in(checkpoint, name)
    _check_said_options(checkpoint, found)
    kind = inner_product or found.inner_product or "elliptical"
    model = build(found.name, kind, **{**found.options, **options})
    notes = fit(model, checkpoint)
    return model.eval(), notes


def found_in(checkpoint: Checkpoint, name: str | None = None) -> Found:
    """What a checkpoint says of its network, which has to be the one of this name, if any."""
    found = model_of(checkpoint)
    if name is not None and name != found.name:
        raise WeightsError(
            f"{checkpoint.path}: these are weights of {found.name}, wanted those of {name}. "
            f"Ask for model {found.name!r} or give another file."
        )
    return found


def _check_said_options(checkpoint: Checkpoint, found: Found) -> None:
    """Refuse a file whose options have names that a network takes, but values that it does not."""
    if not found.options:
        return
    try:
        with torch.device("meta"):
            build(found.name, found.inner_product or "euclidean", **found.options)
    # Anyone can write a file, and builders check what a caller may mean, not what a file may hold.
    except Exception as error:
        raise WeightsError(
            f"{checkpoint.path}: no {found.name} can be built with its options "
            f"{str(found.options)[:80]}: {str(error)[:200]}"
        ) from None


def find(weights: str | os.PathLike[str]) -> Path:
    """The file behind a path, or behind the name of embedded weights or of a published checkpoint.

    A file comes first. Of the two sets called raft-small, the embedded one is meant, which is what
    the name means everywhere else; the authors' is had by its path, which `fetch` gives.
    """
    if not isinstance(weights, str | os.PathLike):
        hint = " (for a state_dict, build the network and call load_state_dict)"
        raise ArgumentError(
            f"weights is a {type(weights).__name__}, wanted a file's path or the name of a "
            f"published checkpoint{hint if isinstance(weights, dict) else ''}"
        )
    if not os.fspath(weights):
        raise ArgumentError(
            "weights is an empty text, wanted a file's path or the name of a published checkpoint"
        )
    path = Path(weights)
    try:
        if path.is_file():
            return path
        if str(weights) in EMBEDDED:
            return embedded_file(str(weights))
        if str(weights) in PUBLISHED:
            return fetch(str(weights))
        if path.is_dir():
            raise FileError(f"{path}: this is a folder, wanted a checkpoint file")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    known = dict.fromkeys((*EMBEDDED, *PUBLISHED))
    hint = did_you_mean(path.stem, known)
    if path.stem in PUBLISHED:
        hint = f" (`lcv models --fetch {path.stem}` fetches the published one and prints its path)"
    raise FileError(
        f"{path}: there is no such file, nor embedded or published weights of that name{hint}; "
        f"wanted a checkpoint's path, or one of {', '.join(known)}"
    )

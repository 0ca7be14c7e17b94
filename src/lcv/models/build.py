"""Networks by name: with random weights (`build`), or with a file's (`load`)."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from lcv.errors import ArgumentError, WeightsError
from lcv.models.archive import Checkpoint, read_checkpoint
from lcv.models.embedded import EMBEDDED, embedded_file
from lcv.models.factory import Factory, find_factory, is_factory
from lcv.models.find import find
from lcv.models.named import check_name, no_weights_of, told_apart
from lcv.models.published import PUBLISHED
from lcv.models.registry import (
    NETWORKS,
    Spec,
    check_inner_product,
    check_options,
    plain,
)
from lcv.models.surgery import attach
from lcv.models.weights import Found, fill, fit, kind_of_w, model_of, own_description
from lcv.models.wrap import as_flow_model

__all__ = [
    "NETWORKS",
    "Spec",
    "build",
    "find",
    "from_checkpoint",
    "load",
    "network_and_weights",
    "spec_of",
]

logger = logging.getLogger("lcv")


def build(name: str, inner_product: str = "elliptical", **options: Any) -> nn.Module:
    """A network with random weights and, with LCV, W = I.

    name:          a key of NETWORKS, or a factory: "package.module:factory" or "file.py:factory"
    inner_product: a key of INNER_PRODUCTS
    options:       what the network's builder or the factory takes (`form`; `md`, `fac`, `heads` for
                   VCN)
    """
    check_name(name)
    check_inner_product(inner_product)
    if is_factory(name):
        return _from_factory(find_factory(name), inner_product, options)
    options = _without_form(NETWORKS[name].builder, name, options)
    check_options(name, options)
    options = {key: plain(value, key) for key, value in options.items()}
    model = NETWORKS[name].builder(inner_product=inner_product, **options)
    return _with_spec(model, Spec(name, inner_product, options))


def _from_factory(
    factory: Factory, inner_product: str | None, options: dict[str, Any]
) -> nn.Module:
    """What a factory builds; inner_product: None to leave that to the factory."""
    options = {key: plain(value, key) for key, value in options.items()}
    options = _without_form(factory.function, factory.name, options)
    if factory.takes_inner_product:
        own = {} if inner_product is None else {"inner_product": inner_product}
        model = as_flow_model(factory(**options, **own), factory.name)
    else:
        model = as_flow_model(factory(**options), factory.name)
        if inner_product not in (None, "euclidean"):
            model = attach(model, inner_product=inner_product)
    spec = Spec(factory.name, inner_product or "euclidean", options, factory.sha256)
    return _with_spec(model, spec)


def _without_form(
    builder: Callable[..., Any], name: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Options without `form` for a builder that takes none: there W is attached, as a factor."""
    form = options.get("form", "factor")
    if "form" in inspect.signature(builder).parameters:
        return options
    if form != "factor":
        raise ArgumentError(
            f"form is {form!r}, but {name} takes no form: LCV is attached to its network, which is "
            f"possible in the form 'factor' alone"
        )
    return {key: value for key, value in options.items() if key != "form"}


def _with_spec(model: nn.Module, spec: Spec) -> nn.Module:
    cast(Any, model).spec = spec
    return model


def spec_of(model: nn.Module) -> Spec:
    """How a network that `build` or `load` made can be built again."""
    spec = getattr(model, "spec", None)
    if not isinstance(spec, Spec):
        raise ArgumentError(f"this {type(model).__name__} was not made by lcv.build or lcv.load")
    return spec


def network_and_weights(
    name: str | None, weights: str | os.PathLike[str] | None = None
) -> tuple[str, str | os.PathLike[str] | None]:
    """The network and the weights that a user means, who may name either one alone.

    Of a file, or of published weights, the network is the one that they are for. The name of a
    network or of embedded weights is left as it is.
    """
    name, weights = told_apart(name, weights)
    if name is not None:
        return name, weights
    assert weights is not None
    if str(weights) in EMBEDDED and not Path(weights).is_file():
        return EMBEDDED[str(weights)], weights
    if str(weights) in PUBLISHED and not Path(weights).is_file():
        return PUBLISHED[str(weights)].model, weights
    return found_in(read_checkpoint(find(weights))).name, weights


def load(
    name: str | None,
    weights: str | os.PathLike[str] | None = None,
    inner_product: str | None = None,
    **options: Any,
) -> nn.Module:
    """A network with trained weights, in evaluation mode.

    name:    a key of NETWORKS; of EMBEDDED, for the weights that come with the package; a factory,
             "package.module:factory" or "file.py:factory"; or a file, which says its network. None
             with `weights` does the same
    weights: a file of any family that the network knows, or the name of a published checkpoint,
             which is then fetched, or of embedded ones, which are the default. A factory's network
             keeps the weights that the factory gave it, unless a file with its own names is given.
    inner_product, options: as for `build`; by default what the file says, else "elliptical", or for
             a factory what it builds
    """
    if name is None or isinstance(name, str):
        name, weights = network_and_weights(name, weights)
    if isinstance(name, str) and name in EMBEDDED:
        if weights is None:
            name, weights = EMBEDDED[name], embedded_file(name)
        elif isinstance(weights, str) and weights == name:  # its own, said twice
            name = EMBEDDED[name]
    check_name(name, embedded=weights is None)
    if inner_product is not None:
        check_inner_product(inner_product)
    if is_factory(name) and weights is None:
        return _from_factory(find_factory(name), inner_product, options).eval()
    if not is_factory(name):
        check_options(name, options)
    if weights is None:
        raise no_weights_of(name)
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
    """The network that a checkpoint is for, filled with it, and notes for the user."""
    if name is not None and is_factory(name):
        return _filled_by_factory(find_factory(name), checkpoint, inner_product, options)
    found = found_in(checkpoint, name)
    _check_said_options(checkpoint, found)
    kind = inner_product or found.inner_product or "elliptical"
    model = build(found.name, kind, **{**found.options, **options})
    notes = fit(model, checkpoint)
    return model.eval(), notes


def _filled_by_factory(
    factory: Factory, checkpoint: Checkpoint, inner_product: str | None, options: dict[str, Any]
) -> tuple[nn.Module, list[str]]:
    """A factory's network with a file's tensors, which bear the network's own names."""
    found = own_description(checkpoint)
    if found is not None and found.name in NETWORKS:
        raise WeightsError(
            f"{checkpoint.path}: these are weights of {found.name}, wanted those of {factory.name}. "
            f"Ask for model {found.name!r} or give another file."
        )
    kind = inner_product
    if kind is None:
        kind = found.inner_product if found else kind_of_w(checkpoint.state)
    given = {**(found.options if found else {}), **options}
    try:
        model = _from_factory(factory, kind, given)
    except ArgumentError as error:
        if not found or not found.options:
            raise
        raise WeightsError(
            f"{checkpoint.path}: {factory.name} cannot be built with the options of this file "
            f"({', '.join(found.options)}): {error}"
        ) from None
    notes = fill(model, checkpoint.state, checkpoint, source_notes(factory, found))
    return model.eval(), notes


def source_notes(factory: Factory, found: Found | None) -> list[str]:
    """A warning where weights were saved from another version of the factory's source."""
    if found is None or found.source in (None, factory.sha256):
        return []
    return [f"the source of {factory.name} has changed since these weights were saved"]


def found_in(checkpoint: Checkpoint, name: str | None = None) -> Found:
    """What a checkpoint says of its network, which has to be the one of this name, if any."""
    found = model_of(checkpoint)
    if is_factory(found.name):
        raise WeightsError(
            f"{checkpoint.path}: these are weights of a network that {found.name} builds. Name it as "
            f"the model, with the path of its file: lcv imports no code that only a file names."
        )
    if name is not None and name != found.name:
        raise WeightsError(
            f"{checkpoint.path}: these are weights of {found.name}, wanted those of {name}. "
            f"Ask for model {found.name!r} or give another file."
        )
    return found


def fill_from(model: nn.Module, checkpoint: Checkpoint) -> list[str]:
    """Fill a network that `build` made; returns notes. A file of another network is refused."""
    spec = spec_of(model)
    if is_factory(spec.name):
        found = own_description(checkpoint)
        if found is None or found.name not in NETWORKS:
            return fill(model, checkpoint.state, checkpoint, [])
    found_in(checkpoint, spec.name)
    return fit(model, checkpoint)


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

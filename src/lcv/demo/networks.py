"""The networks of the page: those that come with the package, and the user's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from torch import nn

from lcv.models.build import load
from lcv.models.types import FlowModel
from lcv.predict.predictor import Predictor

MODELS = {
    "raft-small": "with LCV",
    "raft-small-vanilla": "its twin without LCV",
    "raft-large": "with LCV",
}
"""What the page says of each network, by its name on the page; `add_network` adds to it."""
_sources: dict[str, str] = {}


def add_network(given: str) -> str:
    """Offer a network of the user's: weights in a file, published ones, or a factory.

    It is loaded now, by `lcv.load`, so that a wrong file is refused before the page opens. Returns
    its name on the page: a file goes by its name without the folder, if no other does.
    """
    if given in MODELS:
        return given
    name = Path(given).name
    if name in MODELS and _sources.get(name) != given:
        name = given
    _sources[name] = given
    try:
        loaded(name)
    except Exception:
        del _sources[name]
        raise
    MODELS[name] = "your own"
    return name


@cache
def loaded(name: str) -> nn.Module:
    """A network by its name on the page."""
    return load(_sources.get(name, name))


@cache
def network(name: str, iters: int) -> Predictor:
    """A network, set to this number of iterations if it iterates."""
    model = loaded(name)
    iterates = cast(FlowModel, model).defaults.iters is not None
    return Predictor(model, iters=iters if iterates else None)


def has_w(name: str) -> bool:
    """Whether a network has a learned W, which can be looked at."""
    products = getattr(loaded(name), "inner_products", None) or {}
    return any(next(product.parameters(), None) is not None for product in products.values())

"""The original's TensorFlow variable names, and ours: one table, read in both directions.

| TensorFlow                                | here                            |
|-------------------------------------------|---------------------------------|
| feature_extractor/conv{k}_{1,2}/weights   | pyramid.conv{k}_{1,2}.weight    |
| estimator_level_{k}/conv{i}/weights       | estimators.{k}.conv{i}.weight   |
| context_network/dilated_conv{i}/weights   | context.conv{i}.weight          |
| …/biases                                  | ….bias                          |
| estimator_level_{k}/raw_P, raw_D          | inner_products.{k}.S_upper, t   |

Weights are (height, width, in, out) there and (out, in, height, width) here. No published
checkpoint has raw_P and raw_D; the authors' LCV code adds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from lcv.inner_product.convert import AUTHORS_KEYS, from_authors, to_authors
from lcv.models.ddflow.pyramid import LEVELS, WIDTHS
from lcv.models.types import Family, Named, State

GLOBAL_STEP = "Variable"
OURS = ("S_upper", "t")
"""The parameters of W that raw_P and raw_D become."""


def tensor_names() -> dict[str, str]:
    """TensorFlow's name of each convolution's weights and biases → ours."""
    layers = {
        f"feature_extractor/conv{level}_{i}": f"pyramid.conv{level}_{i}"
        for level in WIDTHS
        for i in (1, 2)
    }
    for level in LEVELS:
        for i in range(1, 7):
            layers[f"estimator_level_{level}/conv{i}"] = f"estimators.{level}.conv{i}"
    for i in range(1, 8):
        layers[f"context_network/dilated_conv{i}"] = f"context.conv{i}"
    leaves = {"weights": "weight", "biases": "bias"}
    return {
        f"{theirs}/{leaf}": f"{ours}.{mine}"
        for theirs, ours in layers.items()
        for leaf, mine in leaves.items()
    }


def from_tensorflow(variables: Mapping[str, Any]) -> State:
    """Our state_dict from TensorFlow variables (arrays or tensors) by name.

    A trailing ":0" is ignored, and so is the step counter. Unknown names are kept, and
    refused when a network is filled. Without raw_P and raw_D there are no entries of W.
    """
    given = {name.removesuffix(":0"): torch.as_tensor(v) for name, v in variables.items()}
    given.pop(GLOBAL_STEP, None)
    state: State = {}
    for theirs, ours in tensor_names().items():
        if theirs in given:
            value = given.pop(theirs)
            state[ours] = (
                value.permute(3, 2, 0, 1).contiguous() if value.ndim == 4 else value
            )  # (h, w, i, o) → (o, i, h, w)
    for level in LEVELS:
        keys = [f"estimator_level_{level}/{leaf}" for leaf in AUTHORS_KEYS]
        if all(key in given for key in keys):
            raw_P, raw_D = map(given.pop, keys)
            both = from_authors(raw_P, raw_D, name=f"estimator_level_{level}/")
            state |= zip((f"inner_products.{level}.{leaf}" for leaf in OURS), both, strict=True)
    return state | given


def to_tensorflow(state: State) -> State:
    """The variables by TensorFlow's names from our state_dict: the inverse of `from_tensorflow`.

    raw_P is 1 on its diagonal and 0 below, neither of which is ever read. Only an elliptical
    inner product, or none with parameters, has a form that the authors' code can hold.
    """
    variables: State = {}
    for theirs, ours in tensor_names().items():
        value = state[ours]
        variables[theirs] = value.permute(2, 3, 1, 0).contiguous() if value.ndim == 4 else value
    for level in LEVELS:
        keys = [f"inner_products.{level}.{leaf}" for leaf in OURS]
        if all(key in state for key in keys):
            scope = f"estimator_level_{level}/"
            raw = to_authors(*(state[key] for key in keys))
            variables |= zip((scope + leaf for leaf in AUTHORS_KEYS), raw, strict=True)
    return variables


def _recognise(mark: str) -> Callable[[State], Named | None]:
    """Files are known by the beginning of one name."""
    return lambda state: Named("ddflow", {}) if any(n.startswith(mark) for n in state) else None


FAMILIES = (
    Family(
        "authors",
        (".npz",),
        _recognise("feature_extractor/conv1_1/weights"),
        lambda state, extras, model: (from_tensorflow(state), []),
        lambda model: to_tensorflow(model.state_dict()),
        holds_w=("euclidean", "elliptical"),
    ),
    Family(
        "bare",
        (),
        _recognise("estimators.6.conv1.weight"),
        lambda state, extras, model: (dict(state), []),
    ),
)

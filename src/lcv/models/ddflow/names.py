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

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import WeightsError
from lcv.inner_product.convert import AUTHORS_KEYS, from_authors, to_authors
from lcv.models.ddflow.pyramid import LEVELS, WIDTHS
from lcv.models.types import Family, Named, State

GLOBAL_STEP = "Variable"


def layer_names() -> dict[str, str]:
    """TensorFlow's name of each convolution → ours, without the leaf (weights or biases)."""
    names = {
        f"feature_extractor/conv{level}_{i}": f"pyramid.conv{level}_{i}"
        for level in WIDTHS
        for i in (1, 2)
    }
    for level in LEVELS:
        for i in range(1, 7):
            names[f"estimator_level_{level}/conv{i}"] = f"estimators.{level}.conv{i}"
    for i in range(1, 8):
        names[f"context_network/dilated_conv{i}"] = f"context.conv{i}"
    return names


def from_tensorflow(variables: Mapping[str, Any]) -> dict[str, Tensor]:
    """Our state_dict from TensorFlow variables (arrays or tensors) by name.

    A trailing ":0" is ignored, and so is the step counter. Every convolution must be there and
    nothing unknown; raw_P and raw_D may be absent at a level, and then the entries of its inner
    product are absent here as well, for the caller to leave at W = I.
    """
    given = {name.removesuffix(":0"): value for name, value in variables.items()}
    given.pop(GLOBAL_STEP, None)
    state: dict[str, Tensor] = {}
    missing = []
    for theirs, ours in layer_names().items():
        for leaf, ours_leaf, dims in (("weights", "weight", 4), ("biases", "bias", 1)):
            name = f"{theirs}/{leaf}"
            if name not in given:
                missing.append(name)
                continue
            value = torch.as_tensor(given.pop(name))
            if value.ndim != dims:
                raise WeightsError(
                    f"{name} has shape {tuple(value.shape)}, wanted {dims} dimensions"
                )
            if dims == 4:
                value = value.permute(3, 2, 0, 1).contiguous()  # (h, w, i, o) → (o, i, h, w)
            state[f"{ours}.{ours_leaf}"] = value
    for level in LEVELS:
        scope = f"estimator_level_{level}/"
        pair = [given.pop(scope + leaf, None) for leaf in AUTHORS_KEYS]
        absent = [leaf for leaf, value in zip(AUTHORS_KEYS, pair, strict=True) if value is None]
        if absent:
            missing += [scope + leaf for leaf in absent if len(absent) == 1]
            continue
        raw_P, raw_D = (torch.as_tensor(value) for value in pair)
        S_upper, t = from_authors(raw_P, raw_D, name=scope)
        state[f"inner_products.{level}.S_upper"] = S_upper
        state[f"inner_products.{level}.t"] = t
    _refuse_strangers(missing, given)
    return state


def to_tensorflow(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The variables by TensorFlow's names from our state_dict: the inverse of `from_tensorflow`.

    raw_P is 1 on its diagonal and 0 below, neither of which is ever read. Only an elliptical
    inner product, or none with parameters, has a form that the authors' code can hold.
    """
    given = dict(state)
    variables: dict[str, Tensor] = {}
    missing = []
    for theirs, ours in layer_names().items():
        for leaf, ours_leaf in (("weights", "weight"), ("biases", "bias")):
            value = given.pop(f"{ours}.{ours_leaf}", None)
            if value is None:
                missing.append(f"{ours}.{ours_leaf}")
                continue
            if leaf == "weights":
                value = value.permute(2, 3, 1, 0).contiguous()  # (o, i, h, w) → (h, w, i, o)
            variables[f"{theirs}/{leaf}"] = value
    for level in LEVELS:
        keys = [f"inner_products.{level}.{leaf}" for leaf in ("S_upper", "t")]
        if all(key in given for key in keys):
            scope = f"estimator_level_{level}/"
            S_upper, t = (given.pop(key) for key in keys)
            variables[f"{scope}raw_P"], variables[f"{scope}raw_D"] = to_authors(S_upper, t)
    _refuse_strangers(missing, given)
    return variables


def _refuse_strangers(missing: list[str], unknown: Iterable[str]) -> None:
    unknown = sorted(unknown)
    if missing or unknown:
        raise WeightsError(
            f"these are not DDFlow's weights: {len(missing)} missing {missing[:4]}, "
            f"{len(unknown)} unknown {unknown[:4]}"
        )


def _recognise_tensorflow(state: State) -> Named | None:
    known = any(key.startswith("feature_extractor/conv1_1/weights") for key in state)
    return Named("ddflow", {}) if known else None


def _recognise_own(state: State) -> Named | None:
    return Named("ddflow", {}) if "estimators.6.conv1.weight" in state else None


def _read_tensorflow(
    state: State, extras: Mapping[str, Any], model: nn.Module
) -> tuple[State, list[str]]:
    return from_tensorflow(state), []


def _read_own(state: State, extras: Mapping[str, Any], model: nn.Module) -> tuple[State, list[str]]:
    return dict(state), []


def _write_tensorflow(model: nn.Module) -> State:
    return to_tensorflow(model.state_dict())


FAMILIES = (
    Family(
        "authors",
        (".npz",),
        _recognise_tensorflow,
        _read_tensorflow,
        _write_tensorflow,
        holds_w=("euclidean", "elliptical"),
    ),
    Family("bare", (), _recognise_own, _read_own),
)

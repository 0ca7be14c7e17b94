"""What a user may call a network, checked before torch, which takes seconds, is imported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models.embedded import EMBEDDED
from lcv.models.factory import is_factory
from lcv.models.find import check_weights
from lcv.models.published import PUBLISHED
from lcv.words import did_you_mean

NAMES = ("raft-large", "raft-small", "vcn", "vcn-small", "ddflow")
"""Of the networks in `lcv.models.registry`."""
SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".tar", ".npz")
"""Of files with weights."""

Weights = str | os.PathLike[str] | None


def check_named(name: str | None, weights: Weights = None, *, trained: bool = True) -> None:
    """Refuse what `lcv.load` would refuse for its name alone: no such network, no such file.

    trained: whether a network without weights is refused too
    """
    name, weights = told_apart(name, weights)
    if weights is not None:
        check_weights(weights)
    if name is None or (name in EMBEDDED and weights in (None, name)):
        return
    check_name(name, embedded=weights is None)
    file = name.rpartition(":")[0]
    if file.endswith(".py") and not Path(file).is_file():
        raise FileError(f"{file}: there is no such file (looked in {Path(file).absolute().parent})")
    if trained and weights is None and not is_factory(name):
        raise no_weights_of(name)


def told_apart(name: str | None, weights: Weights = None) -> tuple[str | None, Weights]:
    """The network and the weights: a file, or the name of published weights, may stand for both."""
    if name is not None and (name in PUBLISHED or Path(name).suffix in SUFFIXES):
        if weights is not None:
            raise ArgumentError(
                f"the model is the file {name!r}, and weights are given too: {str(weights)!r}; "
                f"leave one of them out"
            )
        return None, name
    if name is None and weights is None:
        raise ArgumentError(f"no network is named; there are {', '.join(NAMES)}")
    return name, weights


def check_name(name: Any, embedded: bool = False) -> None:
    """Refuse what is neither the name of a network nor that of a factory.

    embedded: the caller takes the names of embedded weights too, so they are listed with the rest
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"the model is a {type(name).__name__}, wanted one of the names {', '.join(NAMES)}"
        )
    if name in EMBEDDED and name not in NAMES:
        raise ArgumentError(
            f"{name!r} names weights that come with the package and no network of its own, wanted "
            f"the network, {EMBEDDED[name]!r}"
        )
    if name not in NAMES and not is_factory(name):
        known = dict.fromkeys((*NAMES, *(EMBEDDED if embedded else ())))
        raise ArgumentError(
            f"unknown model {name[:80]!r}{did_you_mean(name, known)}; there are "
            f"{', '.join(known)}, and `lcv models` says more about each; for a network of your own, "
            f"write package.module:factory or file.py:factory"
        )


def no_weights_of(name: str) -> WeightsError:
    """The error of a network that needs weights and has none."""
    return WeightsError(
        f"{name}: no weights of this network come with the package (there are those of "
        f"{', '.join(EMBEDDED)}); give weights=FILE, a checkpoint of {name}"
    )

"""The networks there are, what each of them takes, and how one is described in a file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import nn

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product import INNER_PRODUCTS
from lcv.models.ddflow import DDFlow, ddflow
from lcv.models.named import check_name
from lcv.models.raft import RAFT, peers, raft_large, raft_small
from lcv.models.types import Family, Peer
from lcv.models.vcn import VCN, vcn, vcn_small


@dataclass(frozen=True)
class Entry:
    """A network of the package: what builds it, the families of its checkpoints, its peers."""

    builder: Callable[..., nn.Module]
    names: tuple[Family, ...] = ()
    peers: tuple[Peer, ...] = ()


NETWORKS = {
    "raft-large": Entry(raft_large, RAFT.names, peers.LARGE),
    "raft-small": Entry(raft_small, RAFT.names, peers.SMALL),
    "vcn": Entry(vcn, VCN.names),
    "vcn-small": Entry(vcn_small, VCN.names),
    "ddflow": Entry(ddflow, DDFlow.names),
}


@dataclass(frozen=True)
class Spec:
    """How to build a network again: enough to be written into a file beside its weights.

    options: plain values of JSON only
    source:  the sha256 of a factory's source file; None for a network of the package
    """

    name: str
    inner_product: str = "elliptical"
    options: dict[str, Any] = field(default_factory=dict)
    source: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def check_inner_product(kind: Any) -> None:
    """Refuse what is not a key of INNER_PRODUCTS."""
    if not isinstance(kind, str) or kind not in INNER_PRODUCTS:
        raise ArgumentError(
            f"unknown inner product {kind!r}; there are {', '.join(INNER_PRODUCTS)}"
        )


def check_options(name: str, options: dict[str, Any]) -> None:
    """Refuse options that the builder of a network of the package does not take."""
    taken = list(inspect.signature(NETWORKS[name].builder).parameters)
    unknown = [each for each in options if each not in taken]
    if unknown:
        raise ArgumentError(
            f"{name}: unknown option {', '.join(map(repr, unknown))}; it takes {', '.join(taken)}"
        )


def plain(value: Any, name: str) -> Any:
    """An option as a value of JSON: arrays, tensors and tuples become lists."""
    if hasattr(value, "tolist"):  # tensors, arrays, and the numbers of numpy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry, name) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ArgumentError(
        f"option {name} is a {type(value).__name__}, wanted a number, a text, or a list of them"
    )


def read_spec(text: Any, path: Any) -> Spec:
    """The description that a file of ours holds, checked, since anyone can write one."""
    try:
        said = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise WeightsError(_unlike(path, f"{str(text)[:40]!r} is no JSON")) from None
    if not isinstance(said, dict):
        raise WeightsError(_unlike(path, f"it is a {type(said).__name__}"))
    wanted = {"name", "inner_product", "options"}
    strangers = sorted((said.keys() - {"source"}) ^ wanted)
    if strangers:
        raise WeightsError(_unlike(path, f"{', '.join(strangers)[:80]} is missing or unknown"))
    if not isinstance(said["options"], dict):
        raise WeightsError(_unlike(path, f"options is a {type(said['options']).__name__}"))
    try:
        check_name(said["name"])
        check_inner_product(said["inner_product"])
        if said["name"] in NETWORKS:
            check_options(said["name"], said["options"])
    except ArgumentError as error:
        raise WeightsError(_unlike(path, str(error))) from None
    return Spec(said["name"], said["inner_product"], said["options"], said.get("source"))


def _unlike(path: Any, what: str) -> str:
    return (
        f"{path}: its description of the model cannot be used: {what}. Wanted a name, an "
        f"inner_product and options, as lcv writes them; the file was changed, or is of a newer "
        f"version of lcv."
    )

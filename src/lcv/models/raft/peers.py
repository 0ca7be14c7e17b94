"""RAFT in other packages, filled with our weights, to be measured beside ours."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

from lcv.models.raft.names import FAMILIES
from lcv.models.types import Peer, State

WRITERS = {family.name: family.write for family in FAMILIES}


def _state(ours: nn.Module, family: str) -> State:
    """Our weights under another package's names."""
    write = WRITERS[family]
    assert write is not None
    return {name.removeprefix("module."): value for name, value in write(ours).items()}


def torchvision_peer(name: str) -> Peer:
    """torchvision's network of this name."""

    def build(ours: nn.Module, iters: int | None) -> nn.Module:
        module = importlib.import_module("torchvision.models.optical_flow")
        network: nn.Module = getattr(module, name)(weights=None)
        network.load_state_dict(_state(ours, "torchvision"))
        return network.eval()

    return Peer("torchvision", build)


def ptlflow_peer(name: str) -> Peer:
    """ptlflow's network of this name; its number of iterations is an attribute."""

    def build(ours: nn.Module, iters: int | None) -> nn.Module:
        network: Any = importlib.import_module("ptlflow").get_model(name)
        network.load_state_dict(_state(ours, "authors"))
        if iters is not None:
            network.iters = iters
        return network.eval()

    return Peer("ptlflow", build)


LARGE = (torchvision_peer("raft_large"), ptlflow_peer("raft"))
SMALL = (torchvision_peer("raft_small"), ptlflow_peer("raft_small"))

"""RAFT of other packages, with our weights, computes what ours does; where they are installed."""

from __future__ import annotations

import sys
import types

import pytest
import torch

import lcv
from lcv.models.raft.names import to_authors_names, torchvision_name
from lcv.models.registry import NETWORKS


@pytest.mark.parametrize("which", [0, 1], ids=["torchvision", "ptlflow"])
@torch.no_grad()
def test_a_peer_with_our_weights_gives_our_flow(which):
    peer = NETWORKS["raft-small"].peers[which]
    pytest.importorskip(peer.package)
    ours = lcv.fold(lcv.load("raft-small"))
    theirs = lcv.wrap(peer.build(ours, 2))
    pair = 255 * torch.rand(2, 1, 3, 130, 136, generator=torch.Generator().manual_seed(0))
    given = {"iters": 2} if theirs.defaults.iters else {}
    apart = theirs(*pair, **given).flow - ours(*pair, iters=2).flow
    assert float(apart.abs().max()) < 1e-2


def test_peers_are_built_by_their_names_and_get_our_weights(monkeypatch):
    """Stand-ins for the two packages, which need not be installed."""

    class Net(torch.nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name, self.iters, self.given = name, 12, None

        def load_state_dict(self, state):
            self.given = state

    small = {"raft_small": lambda weights: Net(f"small, {weights}")}
    theirs = types.SimpleNamespace(**small, raft_large=lambda weights: Net(f"large, {weights}"))
    monkeypatch.setitem(sys.modules, "torchvision.models.optical_flow", theirs)
    monkeypatch.setitem(sys.modules, "ptlflow", types.SimpleNamespace(get_model=Net))
    ours = lcv.build("raft-small", "euclidean")
    first, second = NETWORKS["raft-small"].peers
    network = first.build(ours, 2)
    assert (first.package, network.name, network.training) == ("torchvision", "small, None", False)
    assert network.given.keys() == {torchvision_name(name) for name in ours.state_dict()}
    network = second.build(ours, None)
    assert (second.package, network.name, network.iters) == ("ptlflow", "raft_small", 12)
    assert not network.training
    assert network.given.keys() == to_authors_names(ours.state_dict()).keys()
    assert second.build(ours, 3).iters == 3
    large = [peer.build(ours, None).name for peer in NETWORKS["raft-large"].peers]
    assert large == ["large, None", "raft"]

"""RAFT of other packages, with our weights, computes what ours does; where they are installed."""

from __future__ import annotations

import pytest
import torch

import lcv
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

"""The authors' way to compute LCV gives our flow: only the time differs."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.errors import ArgumentError


@pytest.fixture(scope="module")
def model():
    return lcv.load("raft-small")


@torch.no_grad()
def test_rebuilding_everything_at_every_update_changes_no_flow(model):
    pair = 255 * torch.rand(2, 1, 3, 64, 72, generator=torch.Generator().manual_seed(0))
    theirs = model.authors_way()
    torch.testing.assert_close(
        theirs.cost_volume.matrix(), model.inner_product.matrix(), atol=1e-5, rtol=1e-5
    )
    ours = model(*pair, iters=2).flow
    assert float((theirs(*pair, iters=2).flow - ours).abs().max()) < 1e-3
    assert ours.abs().max() > 1
    built = []
    theirs.cost_volume.matrix = lambda: built.append(1) or torch.eye(128)
    theirs(*pair, iters=3)
    assert len(built) == 3  # once an update


def test_the_network_itself_stays_as_it_is(model):
    had = model.inner_product, model.cost_volume
    model.authors_way()
    assert (model.inner_product, model.cost_volume) == had
    with pytest.raises(ArgumentError, match="elliptical W, this one is Euclidean"):
        lcv.fold(model).authors_way()

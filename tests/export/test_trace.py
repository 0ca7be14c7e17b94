"""Programs have a grid_sample or none, as asked; what torch cannot trace is told in a sentence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lcv.cost_volume import warp
from lcv.errors import BackendError
from lcv.export.sizes import choose_sizes
from lcv.export.trace import nodes_of, trace
from lcv.models.raft import RAFT


class Stubborn(nn.Module):
    """Its program depends on the pixels."""

    def forward(self, image1, image2):
        return image1[:, :2] if image1.sum() > 0 else image2[:, :2]


@pytest.mark.parametrize(("size", "advice"), [(None, "give one size"), ((64, 64), "")])
def test_what_cannot_be_traced_is_told_in_a_sentence(size, advice):
    sizes = choose_sizes("it", RAFT.export_rule, size)
    with pytest.raises(BackendError, match=f"cannot trace stubborn .*{advice}") as caught:
        trace("stubborn", Stubborn(), sizes, "gather")
    assert "\n" not in str(caught.value)


class Warp(nn.Module):
    """What VCN does at each of its levels."""

    def forward(self, image1, image2):
        with torch.autocast("cpu", enabled=False):
            return warp(image1, image2[:, :2] / 10)[:, :2]


@pytest.mark.parametrize("lookup", ["gather", "grid_sample"])
@pytest.mark.parametrize("size", [None, (64, 72)], ids=["open", "one size"])
def test_a_warp_has_a_grid_sample_if_it_was_asked_for(size, lookup):
    program = trace("warp", Warp(), choose_sizes("it", RAFT.export_rule, size), lookup)
    targets = [str(node.target) for node in nodes_of(program)]
    assert any("grid_sampler" in target for target in targets) == (lookup == "grid_sample")
    images = 255 * torch.rand(2, 1, 3, *(size or (160, 136)))
    # Pixel positions of some hundred lose 1e-5 in the grid's −1 … 1, on slopes of 255 a pixel.
    torch.testing.assert_close(program.module()(*images), Warp()(*images), atol=2e-2, rtol=0)

"""How each network gets into a file: its rule for other sizes, its options."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.errors import ArgumentError
from lcv.export.make import choose_iters, choose_lookup
from lcv.models.ddflow import DDFlow
from lcv.models.raft import RAFT
from lcv.models.vcn import VCN


@pytest.mark.parametrize(("height", "width"), [(125, 155), (128, 160), (121, 161)])
@pytest.mark.parametrize("mode", ["sintel", "kitti"])
def test_rafts_rule_as_its_sentence_says_it(height, width, mode):
    """Written from the words in the file alone: half and half, the odd pixel right and below."""
    image = torch.rand(1, 3, height, width)
    across, down = -width % 8, -height % 8
    top = down // 2 if mode == "sintel" else 0
    left = across // 2
    around = ((0, 0), (0, 0), (top, down - top), (left, across - left))
    fitted = RAFT.export_rule.fit(image, image, mode)
    assert np.array_equal(fitted.image1.numpy(), np.pad(image.numpy(), around, mode="edge"))
    assert torch.equal(fitted.undo(fitted.image2), image)


def test_vcns_rule_scales_the_flow_with_the_image():
    image = torch.rand(1, 3, 100, 70)
    fitted = VCN.export_rule.fit(image, image, None)
    assert fitted.image1.shape[2:] == (128, 128)
    one = fitted.undo(torch.ones(1, 2, 128, 128))
    torch.testing.assert_close(one[:, 0], torch.full((1, 100, 70), 70 / 128))
    torch.testing.assert_close(one[:, 1], torch.full((1, 100, 70), 100 / 128))


def test_lookups_and_iterations_that_a_network_does_not_have():
    assert choose_lookup("raft-small", RAFT.export_rule, None) == "gather"
    assert choose_lookup("vcn", VCN.export_rule, None) == "grid_sample"
    with pytest.raises(ArgumentError, match="ddflow has no lookup 'grid_sample': its warp"):
        choose_lookup("ddflow", DDFlow.export_rule, "grid_sample")
    with pytest.raises(ArgumentError, match="no lookup 'texture'. It has gather, grid_sample"):
        choose_lookup("raft-small", RAFT.export_rule, "texture")
    assert choose_iters("raft-small", RAFT.defaults, None) == 12
    assert choose_iters("vcn", VCN.defaults, None) is None
    with pytest.raises(ArgumentError, match="iters is 0, wanted a whole number of at least 1"):
        choose_iters("raft-small", RAFT.defaults, 0)
    with pytest.raises(ArgumentError, match="vcn does not iterate, got iters=3"):
        choose_iters("vcn", VCN.defaults, 3)

"""Occlusion by the forward-backward check: against the original's, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lcv.errors import ShapeError
from lcv.losses.occlusion import occluded_by_consistency
from testing.shared import shared


def constant(x: float, y: float, h: int = 6, w: int = 8) -> Tensor:
    return torch.tensor([x, y], dtype=torch.float64)[None, :, None, None].repeat(1, 1, h, w)


def test_equals_the_original() -> None:
    arrays = np.load(shared("golden", "ddflow__losses.npz"))
    flows = [torch.from_numpy(arrays[name]).permute(0, 3, 1, 2) for name in ("flow_fw", "flow_bw")]
    for name, ours in zip(("occ_fw", "occ_bw"), occluded_by_consistency(*flows), strict=True):
        theirs = torch.from_numpy(arrays[name]).permute(0, 3, 1, 2).bool()
        assert 0.1 < theirs.float().mean() < 0.9
        assert (ours == theirs).float().mean() >= 0.999, name


def test_opposite_flows_hide_only_what_leaves_the_view() -> None:
    occluded1, occluded2 = occluded_by_consistency(constant(2, 1), constant(-2, -1))
    assert occluded1.shape == (1, 1, 6, 8)
    assert occluded1.dtype == occluded2.dtype == torch.bool
    wanted1 = torch.ones(6, 8, dtype=torch.bool)
    wanted1[:4, :5] = False  # x + 2 < 7 and y + 1 < 5: this warp has no last row and column
    assert torch.equal(occluded1[0, 0], wanted1)
    wanted2 = torch.ones(6, 8, dtype=torch.bool)
    # x − 2 > −1 and y − 1 > −1, and the last row and column do come back
    wanted2[1:, 2:] = False
    assert torch.equal(occluded2[0, 0], wanted2)


def test_threshold_by_hand() -> None:
    """|there + back|² against 0.01 (|there|² + |back|²) + 0.5, just under and just over."""
    back = constant(-3, 0)
    # gap² = 0.01 (9 + (3 + gap)²) + 0.5, or 0.99 gap² − 0.06 gap − 0.68 = 0, at gap = 0.8596
    for gap, hidden in ((0.859, False), (0.860, True)):
        there = constant(3 + gap, 0)
        occluded, _ = occluded_by_consistency(there, back)
        assert bool(occluded[0, 0, 2, 1]) == hidden
        assert bool(occluded[0, 0, :-1, :3].all()) == hidden


def test_out_of_view_counts_from_a_length_of_0_711() -> None:
    for length, hidden in ((0.710, False), (0.711, True)):
        occluded, _ = occluded_by_consistency(constant(length, 0), constant(-length, 0))
        assert bool(occluded[0, 0, :, -1].all()) == hidden
        assert not occluded[0, 0, :-1, :-1].any()


def test_flows_at_rest_hide_nothing_and_exchange_exchanges() -> None:
    rest = torch.zeros(2, 2, 5, 7)
    assert not torch.cat(occluded_by_consistency(rest, rest)).any()
    generator = torch.Generator().manual_seed(0)
    there, back = 0.6 * torch.randn(2, 1, 2, 9, 12, generator=generator)
    one, other = occluded_by_consistency(there, back)
    assert 0 < one.sum() < one.numel()
    exchanged = occluded_by_consistency(back, there)
    assert torch.equal(exchanged[0], other)
    assert torch.equal(exchanged[1], one)


def test_no_gradient() -> None:
    flow = torch.randn(1, 2, 4, 5, requires_grad=True)
    assert not any(mask.requires_grad for mask in occluded_by_consistency(flow, -flow))


def test_flows_of_two_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match="occluded_by_consistency: flow_bw has h=5 but flow_fw"):
        occluded_by_consistency(torch.zeros(1, 2, 4, 6), torch.zeros(1, 2, 5, 6))

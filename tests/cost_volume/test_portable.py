"""Lookups for export: the costs of AllPairs, by gather and by grid_sample; warps without the latter."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from lcv.cost_volume import AllPairs, sample
from lcv.cost_volume.allpairs.portable import LOOKUPS, lookup_like, sample_by_gather
from lcv.errors import ArgumentError

VOLUME = AllPairs(levels=3, radius=(2, 1), scale=0.5)


def _inputs(b: int = 2, c: int = 5, h: int = 9, w: int = 14) -> tuple[torch.Tensor, ...]:
    """Features, and coords in the map, around it and on whole pixels, in float64."""
    f1, f2 = torch.randn(2, b, c, h, w, dtype=torch.float64)
    spread = torch.tensor([w + 20.0, h + 20.0], dtype=torch.float64).view(2, 1, 1)
    coords = torch.rand(b, 2, h, w, dtype=torch.float64) * spread - 10
    coords[:, :, ::2, ::3] = coords[:, :, ::2, ::3].round()
    return f1, f2, coords


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_the_costs_are_those_of_all_pairs(lookup):
    f1, f2, coords = _inputs()
    truth = AllPairs(levels=3, radius=(2, 1), scale=0.5, backend="reference")
    ours = lookup_like(VOLUME, lookup)
    torch.testing.assert_close(
        ours.lookup(ours.build(f1, f2), coords), truth.lookup(truth.build(f1, f2), coords)
    )


@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("far", [-1e9, 1e9, math.inf, -math.inf])
def test_out_of_view_is_zero_however_far(lookup, far):
    f1, f2, coords = _inputs()
    ours = lookup_like(VOLUME, lookup)
    costs = ours.lookup(ours.build(f1, f2), torch.full_like(coords, far))
    assert torch.equal(costs, torch.zeros_like(costs))


def test_no_address_comes_of_a_nan():
    f1, f2, coords = _inputs()
    coords[0, 0, 0, 0] = math.nan
    ours = lookup_like(VOLUME, "gather")
    costs = ours.lookup(ours.build(f1, f2), coords)
    assert costs[0, :, 0, 0].isnan().all()
    assert costs[1].isfinite().all()


def test_a_warp_by_gather_is_that_by_grid_sample():
    x, _, coords = _inputs()
    px, py = coords[:, 0], coords[:, 1]
    grid = torch.stack(((2 * px + 1) / 14 - 1, (2 * py + 1) / 9 - 1), dim=-1)
    gathered = sample_by_gather(x, grid, 0, 0, False)
    torch.testing.assert_close(gathered, F.grid_sample(x, grid, align_corners=False))
    torch.testing.assert_close(gathered, sample(x, coords))


def test_other_kinds_of_sampling_are_refused():
    x, _, coords = _inputs()
    with pytest.raises(ArgumentError, match="align_corners True; wanted 0, 0 and False"):
        sample_by_gather(x, coords.movedim(1, -1), 0, 0, True)


def test_an_unknown_lookup_is_refused():
    with pytest.raises(
        ArgumentError, match="lookup is 'texture', wanted one of gather, grid_sample"
    ):
        lookup_like(VOLUME, "texture")

"""Means that are the same in any order of summation."""

from __future__ import annotations

import torch

from lcv.data.augment.means import UNIT, exact_sum, mean_of


def test_a_mean_is_a_mean() -> None:
    values = 255 * torch.rand(3, 8, 9, dtype=torch.float64)
    inside = torch.rand(3, 8, 9) > 0.3
    mean = mean_of(exact_sum(values, inside), inside.sum((-2, -1)))
    for k in range(3):
        torch.testing.assert_close(mean[k], values[k][inside[k]].mean(), rtol=0, atol=1 / UNIT)


def test_order_does_not_matter() -> None:
    values = 255 * torch.rand(1, 200, 300, dtype=torch.float64)
    shuffled = values.flatten()[torch.randperm(60000)].view(1, 300, 200)
    everywhere = torch.ones(1, 1, dtype=torch.bool)
    assert torch.equal(exact_sum(values, everywhere), exact_sum(shuffled, everywhere))


def test_a_whole_33_megapixel_image_of_white_does_not_overflow() -> None:
    white = torch.full((1, 1, 1), 255.0).expand(1, 4096, 16)
    total = exact_sum(white, torch.ones(1, 1, dtype=torch.bool)).item() * (2**25 // (4096 * 16))
    assert total == 255 * 2**25 * int(UNIT) < 2**63

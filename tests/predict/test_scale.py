"""The scale of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.predict.scale import rounded_up, sample_pairs


@pytest.mark.parametrize("value", [0.0000123, 0.999, 1.0, 2.001, 9.995, 23.412, 99.95, 12345.6])
def test_a_scale_is_rounded_up_to_three_digits(value):
    rounded = rounded_up(value)
    assert value * (1 - 1e-8) <= rounded <= value * 1.0101
    assert float(f"{rounded:.3g}") == rounded
    assert rounded_up(rounded) == rounded


@pytest.mark.parametrize("pairs", [2, 7, 8, 15, 16, 40, 41, 279, 100_000])
def test_a_scale_is_taken_from_pairs_all_over_and_costs_an_eighth_at_most(pairs):
    chosen = sample_pairs(pairs)
    assert len(chosen) == len(set(chosen)) == min(5, max(1, pairs // 8))
    assert all(0 <= pair < pairs for pair in chosen)
    gaps = np.diff([-chosen[0] - 1, *chosen, 2 * pairs - chosen[-1]])
    assert gaps.max() - gaps.min() <= 2

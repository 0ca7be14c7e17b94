"""The scale of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.predict.scale import sample_pairs


@pytest.mark.parametrize("pairs", [2, 7, 8, 15, 16, 40, 41, 279, 100_000])
def test_a_scale_is_taken_from_pairs_all_over_and_from_all_of_a_short_sequence(pairs):
    chosen = sample_pairs(pairs)
    wanted = pairs if pairs < 8 else min(5, max(3, pairs // 8))
    assert len(chosen) == len(set(chosen)) == wanted
    assert all(0 <= pair < pairs for pair in chosen)
    gaps = np.diff([-chosen[0] - 1, *chosen, 2 * pairs - chosen[-1]])
    assert gaps.max() - gaps.min() <= 2

"""Parts of the slow truth by hand."""

from __future__ import annotations

import pytest

from lcv.data.synthetic.reference import Truth, _cubic, _solved


def test_a_tile_is_reflected_at_its_ends():
    """Of 20 texels those from 3 to 16 are drawn from, so that the weights reach no neighbour."""
    truth = object.__new__(Truth)
    truth.tile = 20
    reflected = {3.0: 3.0, 16.0: 16.0, 1.0: 5.0, 18.0: 14.0, -12.0: 14.0, 33.0: 7.0, 9.5: 9.5}
    assert {x: truth._reflected(x) for x in reflected} == reflected


def test_weights_of_cubic_convolution():
    weights = {0.0: 1.0, 0.5: 0.59375, 1.0: 0.0, 1.5: -0.09375, 2.0: 0.0, 2.5: 0.0, -3.0: 0.0}
    assert {t: _cubic(t) for t in weights} == weights
    assert _cubic(-0.5) == _cubic(0.5)


def test_a_point_is_found_or_said_not_to_be_there():
    u, v = _solved(lambda p: (p[0] ** 3 + p[0] + p[1], 2 * p[1] - p[0]), (11.0, 0.0))
    # It may miss the target by 1e-9, and the slopes there are [[13, 1], [-1, 2]].
    assert (u, v) == pytest.approx((2.0, 1.0), abs=1e-9)
    with pytest.raises(AssertionError, match=r"no point found that goes to \(0\.0, 0\.0\)"):
        _solved(lambda p: (p[0] ** 2 + 1, p[1]), (0.0, 0.0))

"""Means that do not depend on the order of summation, so that a pair is the same in any batch."""

from __future__ import annotations

from torch import Tensor

UNIT = 2.0**30
"""Values are summed as whole multiples of 1/this: 255 times 2²⁵ pixels fits 63 bits."""


def exact_sum(values: Tensor, inside: Tensor) -> Tensor:
    """Σ over the last two axes where `inside`, in units of 2⁻³⁰, int64.

    values: (…, h, w) in 0 … 255; inside: bool, broadcast to it. Each value is rounded to a unit.
    """
    whole = (values.double() * UNIT).round().long()
    return (whole * inside).sum((-2, -1))


def mean_of(total: Tensor, count: Tensor) -> Tensor:
    """The mean, float64, from a sum of `exact_sum` and how many values it has."""
    return total.double() / count.double() * (1 / UNIT)

"""Tolerances that come from an oracle, so that nobody picks a number."""

from __future__ import annotations

import torch
from torch import Tensor


def assert_as_exact_as(fast: Tensor, plain: Tensor, truth: Tensor, slack: float = 2.0) -> None:
    """`fast` may err at most `slack` times as much as plain torch in the same dtype does.

    fast, plain: the same quantity in the same dtype; truth: it again, in float64.
    """
    spread = truth.abs().max()
    budget = slack * (plain - truth).abs().max() + torch.finfo(fast.dtype).eps * spread
    worst = (fast - truth).abs().max()
    assert worst <= budget, f"error {worst:.3e} exceeds {budget:.3e}; truth spans ±{spread:.3e}"

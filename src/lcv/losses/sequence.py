"""RAFT's loss: every prediction against the truth, later ones weighing more."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.errors import ArgumentError


def sequence_loss(
    flows: Sequence[Tensor],
    flow: Tensor,
    valid: Tensor,
    gamma: float = 0.8,
    max_flow: float = 400.0,
    weight: Tensor | None = None,
) -> Tensor:
    """RAFT's sequence loss.

        Σ_i gamma^(n−1−i) · mean(weight · known · |flows[i] − flow|),
        known = valid ≥ 0.5 and |flow| < max_flow

    flows: n predictions (b, 2, h, w), the last one last; flow: the truth, (b, 2, h, w); valid:
    (b, 1, h, w), bool or a number; weight: (b, 1, h, w), what each pixel counts, 1 if None → scalar

    Conventions: the difference is taken per component, and the mean is over all b·2·h·w numbers,
    not over the known ones, exactly as in RAFT. So a sparse truth (KITTI) weighs less than a dense
    one, and since nothing divides by a mask, the mean over processes is already that of the whole
    batch. RAFT trains with gamma 0.8 and fine-tunes with 0.85.

    Facts: where `known` is false the truth may hold anything, NaN included; no gradient there. A
    weight of 1 everywhere changes no bit.
    """
    if not flows:
        raise ArgumentError(
            "sequence_loss: flows is empty, wanted at least one prediction. In evaluation a model "
            "returns none unless called with all_flows=True."
        )
    for i, prediction in enumerate(flows):
        expect(
            "sequence_loss",
            prediction,
            f"flows[{i}]: b 2 h w",
            flow,
            "flow: b 2 h w",
            valid,
            "valid: b 1 h w",
            hint="Predictions and truth need one size, and `valid` one channel.",
        )
    known = (valid >= 0.5) & (torch.linalg.vector_norm(flow, dim=1, keepdim=True) < max_flow)
    truth = torch.where(known, flow, 0.0)
    counted = known if weight is None else known * weight
    n = len(flows)
    terms = [
        gamma ** (n - 1 - i) * (counted * (prediction - truth).abs()).mean()
        for i, prediction in enumerate(flows)
    ]
    return torch.stack(terms).sum()

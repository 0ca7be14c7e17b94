"""Metrics of flow against truth: sums that add up over batches and processes, then names.

    epe        mean end-point error |flow − truth|₂ over all known pixels, in px
    epe_image  the same averaged within each image first
    px1, px3, px5   share of known pixels with an error below 1, 3, 5 px, in %
    fl         share of outliers, in %: error above 3 px and above 5 % of the true length

Never a bare pair of numbers: every value travels with its name.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.expect import expect

THRESHOLDS = {"px1": 1.0, "px3": 3.0, "px5": 5.0}
_NAMES = ("pixels", "epe", *THRESHOLDS, "fl", "images", "epe_image")


def flow_sums(flow: Tensor, truth: Tensor, valid: Tensor) -> Tensor:
    """The sums that `metrics_of` divides; add those of any number of batches.

    flow, truth: (b, 2, h, w), valid: (b, 1, h, w) bool → (8,) float64, on the flow's device
    Facts: exact to the order of addition; images without a known pixel count for nothing.
    """
    expect("flow_sums", flow, "flow: b 2 h w", truth, "truth: b 2 h w", valid, "valid: b 1 h w")
    known = valid.squeeze(1)
    truth = torch.where(valid, truth, 0).double()
    error = torch.where(known, (flow.double() - truth).norm(dim=1), 0)  # (b, h, w)
    length = truth.norm(dim=1)
    count = known.sum((1, 2)).double()  # (b,)
    outlier = (error > 3) & (error > 0.05 * length) & known
    below = [((error < limit) & known).sum() for limit in THRESHOLDS.values()]
    per_image = error.sum((1, 2)) / count.clamp(min=1)
    sums = [count.sum(), error.sum(), *below, outlier.sum(), (count > 0).sum(), per_image.sum()]
    return torch.stack([value.double() for value in sums])


def metrics_of(sums: Tensor) -> dict[str, float]:
    """Named metrics from sums; empty if no pixel was known."""
    values = dict(zip(_NAMES, sums.tolist(), strict=True))
    if not values["pixels"]:
        return {}
    named = {"epe": values["epe"] / values["pixels"]}
    named["epe_image"] = values["epe_image"] / values["images"]
    for name in (*THRESHOLDS, "fl"):
        named[name] = 100 * values[name] / values["pixels"]
    return named

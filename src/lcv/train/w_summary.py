"""The learned W in the numbers of a log entry."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from lcv.inner_product import Spectral
from lcv.inner_product.interpret import summarise


@torch.no_grad()
def w_summary(model: nn.Module) -> dict[str, Any]:
    """The finest W in four numbers and its spectrum, where it has eigenvalues and a rotation."""
    product = getattr(model, "inner_product", None)
    if not isinstance(product, Spectral):
        return {}
    summary = summarise(product.matrix().cpu(), product.rotation().cpu())
    return {
        "w_smallest": float(summary.eigenvalues[0]),
        "w_largest": float(summary.eigenvalues[-1]),
        "w_distance": summary.distance,
        "p_angle": float(summary.angles.max()),
        "w_spectrum": summary.eigenvalues.tolist(),
    }

"""The truth about the projected volume: three steps, each written out."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.local import local_cost_volume


def projected_cost_volume(
    f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, *, slope: float
) -> Tensor:
    """See `lcv.cost_volume.projected.projected_cost_volume`."""
    products = local_cost_volume(f1, f2, (u, v), keep_channels=True, backend="reference")
    active = torch.where(products > 0, products, slope * products)
    return torch.einsum("oc,bcuvhw->bouvhw", weight, active)

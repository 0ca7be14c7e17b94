"""The projected volume through the channel-deep one: a product, a leaky ReLU and a convolution."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.local import local_cost_volume


def projected_cost_volume(
    f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, *, slope: float
) -> Tensor:
    """See `lcv.cost_volume.projected.projected_cost_volume`."""
    products = local_cost_volume(f1, f2, (u, v), keep_channels=True, backend="torch")
    active = F.leaky_relu(products, slope, inplace=True)
    mixed = F.conv3d(active.flatten(-2), weight[:, :, None, None, None])
    return mixed.reshape(*mixed.shape[:-1], *f1.shape[-2:])

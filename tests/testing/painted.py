"""One painted pair with known flow: a texture seen through a smooth bend."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.warp import warp


def texture(height: int, width: int, seed: int = 0) -> Tensor:
    """Colour noise with detail at several scales, (1, 3, h, w), 0 … 255."""
    generator = torch.Generator().manual_seed(seed)
    layers = [
        F.interpolate(
            torch.rand(1, 3, height // cell + 2, width // cell + 2, generator=generator),
            (height, width),
            mode="bilinear",
            align_corners=False,
        )
        for cell in (2, 4, 8, 16)
    ]
    mixed = torch.stack(layers).mean(0)
    return 255 * (mixed - mixed.min()) / (mixed.max() - mixed.min())


def painted_pair(height: int, width: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Two frames (1, 3, h, w) and the flow (1, 2, h, w) from the first to the second.

    image1(x) = image2(x + flow(x)) by construction. The flow turns its direction across the
    image, so that no network can produce it from a constant alone, and is smooth enough for one
    that works at an eighth of the resolution.
    """
    y = torch.linspace(0, 1, height).view(1, 1, height, 1).expand(1, 1, height, width)
    x = torch.linspace(0, 1, width).view(1, 1, 1, width).expand(1, 1, height, width)
    flow = torch.cat([4 * torch.cos(math.pi * x), 3 * torch.sin(math.pi * y) - 1.5 * x], dim=1)
    image2 = texture(height, width, seed)
    return warp(image2, flow), image2, flow

"""From an eighth of the resolution to all of it: by learned convex weights, or bilinearly."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.resize import resize_flow

FACTOR = 8


def convex_upsample(
    flow: Tensor, mask: Tensor, factor: float = 1.0, backend: str = "auto"
) -> Tensor:
    """Each fine pixel a convex mix of the nine coarse ones around it.

    flow: (b, 2, h, w), mask: (b, 9·8·8, h, w), which times factor are logits → (b, 2, 8h, 8w)
    Conventions: the nine neighbours are row-major, outside the map they count as flow 0; of the
    two eights the first is the row within the coarse pixel.
    """
    if choose_backend("convex_upsample", backend, flow) == "triton":
        from lcv.models.raft import triton_upsample

        out: Tensor = triton_upsample.upsample_op(flow.float(), mask, factor)
        return out.to(flow.dtype)
    b, _, h, w = flow.shape
    mask = mask if factor == 1 else factor * mask
    mask = mask.float().to(flow.dtype).view(b, 9, 1, FACTOR, FACTOR, h, w)
    weights = torch.softmax(mask, dim=1).unbind(1)
    around = F.unfold(FACTOR * flow, 3, padding=1).view(b, 2, 9, 1, 1, h, w).unbind(2)
    # Nine sums over whole maps: as an einsum it would be a tiny product for every coarse pixel.
    fine = weights[0] * around[0]
    for weight, neighbour in zip(weights[1:], around[1:], strict=True):
        fine = torch.addcmul(fine, weight, neighbour)
    return fine.permute(0, 1, 4, 2, 5, 3).reshape(b, 2, FACTOR * h, FACTOR * w)


def bilinear_upsample(flow: Tensor) -> Tensor:
    """(b, 2, h, w) → (b, 2, 8h, 8w), corners aligned, values times 8."""
    if torch.compiler.is_compiling() and flow.is_cuda:
        return upsample_by_products(flow)
    h, w = flow.shape[-2:]
    return resize_flow(flow, (FACTOR * h, FACTOR * w), align_corners=True)


def upsample_by_products(flow: Tensor) -> Tensor:
    """The same as two products with matrices of bilinear weights.

    The gradient of a product is a product, that of an interpolation hundreds of additions to each
    coarse number; in a compiled training step it is a fraction of the time.
    """
    h, w = flow.shape[-2:]
    with torch.autocast(flow.device.type, enabled=False):
        return FACTOR * (_weights(h, flow) @ flow @ _weights(w, flow).T)


def _weights(n: int, like: Tensor) -> Tensor:
    """(8n, n): what each coarse number counts in each fine one."""
    fine = torch.arange(FACTOR * n, dtype=like.dtype, device=like.device)
    position = fine * ((n - 1) / (FACTOR * n - 1))
    coarse = torch.arange(n, dtype=like.dtype, device=like.device)
    return (1 - (position[:, None] - coarse).abs()).clamp(min=0)

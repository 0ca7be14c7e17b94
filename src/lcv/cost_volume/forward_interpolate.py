"""A flow carried along itself to start the next pair from it (RAFT's warm start)."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.conventions import coords_from_flow, pixel_grid
from lcv.cost_volume.expect import expect

_CHUNK_BYTES = 16 * 2**20


def forward_interpolate(flow: Tensor) -> Tensor:
    """Every pixel takes the flow of the moved point nearest to it; (b, 2, h, w) → (b, 2, h, w).

    Each pixel p moves to p' = p + flow(p). Points with 0 < x' < w and 0 < y' < h, strictly, are
    kept, as RAFT keeps them, and each pixel of the grid copies the flow of the kept point at the
    least distance. Where several are equally near, the first in row-major order is taken.

    Facts: where every point has left the frame, the result is zero; a constant flow stays
    constant unless it leaves; the memory used beside the result is bounded.
    """
    b, h, w = expect("forward_interpolate", flow, "flow: b 2 h w")
    points = coords_from_flow(flow).flatten(2)  # (b, 2, n)
    x, y = points[:, 0], points[:, 1]
    kept = (x > 0) & (x < w) & (y > 0) & (y < h)  # (b, n)
    x = torch.where(kept, x, torch.inf)
    y = torch.where(kept, y, torch.inf)
    grid = pixel_grid(h, w, dtype=flow.dtype, device=flow.device).flatten(1)  # (2, n)
    chunk = max(1, _CHUNK_BYTES // (b * h * w * flow.element_size()))
    nearest = [
        ((x[:, None] - q[0, :, None]).square_() + (y[:, None] - q[1, :, None]).square_()).argmin(2)
        for q in torch.split(grid, chunk, dim=1)
    ]
    index = torch.cat(nearest, dim=1)  # (b, n)
    carried = flow.flatten(2).gather(2, index[:, None].expand(b, 2, h * w)).view(b, 2, h, w)
    return torch.where(kept.any(1)[:, None, None, None], carried, torch.zeros_like(flow))

"""Bilinear sampling at pixel coordinates."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.conventions import exact_dtype
from lcv.cost_volume.expect import expect


def sample(x: Tensor, coords: Tensor) -> Tensor:
    """x read between its pixels, bilinearly, with zeros around it.

        out[y', x'] = Σ_{i,j} max(0, 1−|X−i|) max(0, 1−|Y−j|) x[j, i],  (X, Y) = coords[y', x']

    x: (b, c, h, w);  coords: (b, 2, h', w') → (b, c, h', w'), in the dtype of x

    Facts: pixel centres lie at integers, so the result is that of align_corners=True, and a map
    of a single row or column is no special case; a point a whole pixel or more outside gives
    exactly zero, however far; differentiable in both arguments.
    """
    _, _, h, w, _, _ = expect("sample", x, "x: b c h w", coords, "coords: b 2 m n")
    dtype = exact_dtype(x, coords)
    # Between −1 and the size lies all that can be seen; beyond, the value is 0 and constant, so
    # the clamp changes nothing except that an infinity no longer meets a zero weight.
    px = coords[:, 0].to(dtype).clamp(-2, w + 1)
    py = coords[:, 1].to(dtype).clamp(-2, h + 1)
    # align_corners=False turns g into ((g+1)·w − 1)/2 pixels, and its inverse never divides by
    # w − 1: the same function of pixel coordinates, without the 0/0 of a map one pixel wide.
    grid = torch.stack(((2 * px + 1) / w - 1, (2 * py + 1) / h - 1), dim=-1)  # (b, h', w', 2)
    out = F.grid_sample(
        x.to(dtype), grid, mode="bilinear", padding_mode="zeros", align_corners=False
    )
    return out.to(x.dtype)

"""Backward warp by a flow, the error it leaves, its in-view mask, and DDFlow's clamped warp."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.conventions import coords_from_flow
from lcv.cost_volume.expect import expect
from lcv.cost_volume.sample import sample

_HINT = "Resize the flow to the map it warps (resize_flow)."


def warp(x: Tensor, flow: Tensor) -> Tensor:
    """x seen through the flow: out[:, y, x] = x at (x, y) + flow[:, y, x], zero outside.

    x: (b, c, h, w);  flow: (b, 2, h, w) → (b, c, h, w)
    Facts: zero flow is the identity; see `sample` for the border.
    """
    expect("warp", x, "x: b c h w", flow, "flow: b 2 h w", hint=_HINT)
    return sample(x, coords_from_flow(flow))


def in_view(flow: Tensor, *, strict: bool = False) -> Tensor:
    """Whether each pixel's target lies in [0, w−1]×[0, h−1]; (b, 2, h, w) → (b, 1, h, w) bool.

    strict: the border itself does not count. This is VCN's mask, |x| < 1 and |y| < 1 in
    normalised coordinates; under zero flow it drops the four border rows and columns.
    """
    _, h, w = expect("in_view", flow, "flow: b 2 h w")
    coords = coords_from_flow(flow)
    x, y = coords[:, :1], coords[:, 1:]
    if strict:
        return (x > 0) & (x < w - 1) & (y > 0) & (y < h - 1)
    return (x >= 0) & (x <= w - 1) & (y >= 0) & (y <= h - 1)


def warp_error(image1: Tensor, image2: Tensor, flow: Tensor) -> Tensor:
    """How badly the flow explains frame 1 by frame 2, in grey levels; NaN where it leaves the view.

        error(x) = mean over colours |image1(x) − image2(x + flow(x))|

    images: (1, 3, h, w), 0 … 255; flow: (1, 2, h, w) → (1, 1, h, w) float32
    """
    # A target a hair outside is rounding, not absence: pixel 0 must not vanish at a flow of −1e-5.
    seen = in_view(flow.round(decimals=3))
    error = (image1.float() - warp(image2.float(), flow)).abs().mean(1, keepdim=True)
    return torch.where(seen, error, torch.nan)


def warp_clamped(x: Tensor, flow: Tensor) -> Tensor:
    """DDFlow's warp, border peculiarities included; its weights were trained with them.

    With (X, Y) = (x, y) + flow, X₀ = trunc X and X₁ = X₀ + 1, both then clamped to [0, w−1], and
    the same for Y:

        out = (Y₁−Y) [(X₁−X) x(X₀,Y₀) + (X−X₀) x(X₁,Y₀)]
            + (Y−Y₀) [(X₁−X) x(X₀,Y₁) + (X−X₀) x(X₁,Y₁)]

    x: (b, c, h, w);  flow: (b, 2, h, w) → (b, c, h, w)

    Facts: inside it is `warp`; X ≥ w−1 gives 0, so even zero flow empties the last row and
    column; X < −1 gives 0; −1 < X < 0 extrapolates from pixels 0 and 1.
    """
    b, c, h, w = expect("warp_clamped", x, "x: b c h w", flow, "flow: b 2 h w", hint=_HINT)
    coords = coords_from_flow(flow)
    # Beyond these bounds the result is 0 and constant; a float that no integer holds never
    # reaches the cast.
    px = coords[:, :1].clamp(-2, w)  # (b, 1, h, w)
    py = coords[:, 1:].clamp(-2, h)
    x0, y0 = px.detach().trunc(), py.detach().trunc()
    x1, y1 = (x0 + 1).clamp(0, w - 1), (y0 + 1).clamp(0, h - 1)
    x0, y0 = x0.clamp(0, w - 1), y0.clamp(0, h - 1)
    flat = x.reshape(b, c, h * w)

    def read(ix: Tensor, iy: Tensor) -> Tensor:
        # Bounded as integers too: a NaN becomes any integer, and must not become an address.
        column, row = ix.long().clamp(0, w - 1), iy.long().clamp(0, h - 1)
        index = (row * w + column).reshape(b, 1, h * w)
        return flat.gather(2, index.expand(b, c, h * w)).reshape(b, c, h, w)

    # Rows first: where X₀ = X₁ the two terms of a row are equal and opposite, hence exactly 0.
    wx0, wx1 = (x1 - px).to(x.dtype), (px - x0).to(x.dtype)
    wy0, wy1 = (y1 - py).to(x.dtype), (py - y0).to(x.dtype)
    above = wx0 * read(x0, y0) + wx1 * read(x1, y0)
    below = wx0 * read(x0, y1) + wx1 * read(x1, y1)
    return torch.add(wy0 * above, wy1 * below)

"""Resize, flip and crop as one map from crop to source, a row of positions an axis and sample.

All three act on each axis by itself. With s the scale, n' = round(n·s) the resized length, o the
crop's offset and k the pixel of the crop, the pixel of the resized axis and its place in the source
are

    r = k + o,  or n' − 1 − (k + o) if flipped
    p = (r + ½)/s − ½,  clamped to 0 … n − 1

which is cv2.resize(fx=s) with bilinear weights (pixel centres at halves, the border repeated, and s
itself rather than n'/n), then a flip, then a slice. `reference.py` does the three one by one.
**Departure:** cv2 only copies where s rounds to the source's own size; here the sampling, like the
flow, always follows s.
Positions are float64, so a place 1000 pixels from the corner is as exact as one beside it.

Resampling multiplies and adds in single steps: fused ones depend on where in memory a pixel lies,
and a pair must not depend on its neighbours in the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.augment.recipes import Geometry
from lcv.data.random import Draws

_TERMS = 10
_SQUARINGS = 4


@dataclass(frozen=True, eq=False)
class Axis:
    """What happens along one axis of b samples. scale: (b,) float64; length (b,) of the source;
    resized (b,) its length after scaling; flip (b,) bool; offset (b,) of the crop, int64."""

    scale: Tensor
    length: Tensor
    resized: Tensor
    flip: Tensor
    offset: Tensor


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the crops of b samples lie. is_resized: (b,) bool, whether the scale was applied;
    where it was not, both scales are 1."""

    y: Axis
    x: Axis
    is_resized: Tensor


def power_of_two(exponent: Tensor) -> Tensor:
    """2^exponent in float64 from + and × alone, so that all devices agree to the bit.

    A Taylor series of e^(exponent·ln 2 / 16), squared four times. Facts: 2⁰ = 1 exactly; relative
    error below 10⁻¹⁴ for |exponent| ≤ 2.
    """
    x = exponent.double() * (math.log(2) * 0.5**_SQUARINGS)
    y = torch.ones_like(x)
    for k in range(_TERMS, 0, -1):
        y = y * x * (1 / k) + 1
    for _ in range(_SQUARINGS):
        y = y * y
    return y


def draw_placement(geometry: Geometry, draws: Draws, heights: Tensor, widths: Tensor) -> Placement:
    """Scales, flips and offsets; heights, widths: (b,) int64, the sizes of the sources.

    scale_x = max(2^U(log2_scale) · 2^U(±stretch), least) with one draw of the first factor for
    both axes, and least = max((crop + slack) / size) over both.
    **Departure:** a pair that would go unresized though it is smaller than the crop is resized; the
    authors' code fails there.
    """
    crop_h, crop_w = geometry.crop
    scale_y = scale_x = torch.ones(len(draws), dtype=torch.float64, device=draws.device)
    is_resized = torch.zeros(len(draws), dtype=torch.bool, device=draws.device)
    if geometry.log2_scale is not None:
        is_resized = draws.happens("augment: resize", (), geometry.resize_probability)
        is_resized = is_resized | (heights < crop_h) | (widths < crop_w)
        h, w = heights.double(), widths.double()
        least = torch.maximum(
            torch.full_like(h, crop_h + geometry.slack) / h,
            torch.full_like(w, crop_w + geometry.slack) / w,
        )
        common = power_of_two(draws.uniform("augment: scale", (), *geometry.log2_scale))
        stretched = draws.happens("augment: stretch", (), geometry.stretch_probability)
        span = (-geometry.stretch, geometry.stretch)
        more = power_of_two(draws.uniform("augment: stretch by", (2,), *span))  # (b, 2)
        one = scale_x

        def scale(extra: Tensor) -> Tensor:
            wanted = common * torch.where(stretched, extra, one)
            return torch.where(is_resized, torch.maximum(wanted, least), one)

        scale_x, scale_y = scale(more[:, 0]), scale(more[:, 1])

    def axis(name: str, crop: int, length: Tensor, scale: Tensor) -> Axis:
        resized = (length.double() * scale).round().long()
        before, after = getattr(geometry, f"margin_{name}")
        room = resized - crop
        places = (room + (before + after)).clamp(min=1)
        place = (draws.bits(f"augment: offset {name}") * places) >> 32
        offset = torch.minimum((place - before).clamp(min=0), room)
        flip = draws.happens(f"augment: flip {name}", (), getattr(geometry, f"flip_{name}"))
        return Axis(scale, length, resized, flip, offset)

    return Placement(
        axis("y", crop_h, heights, scale_y), axis("x", crop_w, widths, scale_x), is_resized
    )


def taps(axis: Axis, crop: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two source pixels a crop pixel lies between and the weight of the second, (b, crop)."""
    k = torch.arange(crop, device=axis.offset.device) + axis.offset[:, None]  # (b, crop)
    r = torch.where(axis.flip[:, None], axis.resized[:, None] - 1 - k, k)
    last = axis.length[:, None] - 1
    p = (r.double() + 0.5) / axis.scale[:, None] - 0.5
    p = torch.minimum(p.clamp(min=0), last.double())
    low = p.floor()
    first = low.long()
    return first, torch.minimum(first + 1, last), p - low


def resample(maps: Tensor, placement: Placement, crop: tuple[int, int]) -> Tensor:
    """Maps (b, c, h, w), float, seen through the placement: (b, c, *crop), bilinear.

    Facts: a crop that is not resized copies bit for bit; nothing beyond a sample's size is read.
    """
    b, c, _, w = maps.shape
    crop_h, crop_w = crop
    first, second, weight = taps(placement.y, crop_h)
    shape = (b, c, crop_h, w)
    above = maps.gather(2, first[:, None, :, None].expand(shape))
    below = maps.gather(2, second[:, None, :, None].expand(shape))
    rows = _between(above, below, weight[:, None, :, None])
    first, second, weight = taps(placement.x, crop_w)
    shape = (b, c, crop_h, crop_w)
    left = rows.gather(3, first[:, None, None, :].expand(shape))
    right = rows.gather(3, second[:, None, None, :].expand(shape))
    return _between(left, right, weight[:, None, None, :])


def _between(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """a + weight·(b − a), into the memory of b; not lerp, which may fuse."""
    return b.sub_(a).mul_(weight.to(a.dtype)).add_(a)


def turn_flow(flow: Tensor, placement: Placement) -> Tensor:
    """Vectors (b, 2, h, w) after the placement: each component times its scale, negated if flipped."""
    factors = [
        torch.where(axis.flip, -axis.scale, axis.scale) for axis in (placement.x, placement.y)
    ]
    return flow * torch.stack(factors, 1).to(flow.dtype)[..., None, None]


def place_dense(
    flow: Tensor, valid: Tensor, placement: Placement, crop: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Truth without holes, interpolated: flow (b, 2, *crop), valid (b, 1, *crop).

    flow: (b, 2, h, w), 0 where not valid. A result is valid if every pixel that has weight in it
    is, so an unknown vector is never mixed into a known one; the authors' sets have no unknown
    ones, and there the two agree. Where not valid the flow is 0.
    """
    unknown = (~valid).to(flow.dtype)
    placed = resample(torch.cat((flow, unknown), 1), placement, crop)
    valid = placed[:, 2:] == 0
    flow = turn_flow(placed[:, :2], placement)
    return torch.where(valid, flow, torch.zeros((), dtype=flow.dtype, device=flow.device)), valid

"""Instance norm, ReLU and the residual sum of RAFT's encoders, channels together, in two readings.

Statistics first: each program finds mean and sum of squared deviations of its pixels, so that no large
numbers cancel; a second kernel joins them; a third normalises and does what follows. In all 3·s bytes
a number, or 4·s with a residual: memory's bandwidth binds.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS, SOME, WARPS = 128, 8, 4
EPS = 1e-5


@triton.jit
def _moments(x, parts, pixels, C: tl.constexpr, LANES: tl.constexpr, PIXELS: tl.constexpr):
    frame = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, LANES)
    kept = (pixel < pixels)[:, None] & (channel < C)[None, :]
    at = (frame * pixels + pixel)[:, None] * C + channel[None, :]
    value = tl.load(x + at, mask=kept, other=0.0).to(tl.float32)
    count = tl.minimum(pixels - tl.program_id(0) * PIXELS, PIXELS).to(tl.float32)
    mean = tl.sum(value, 0) / count
    off = tl.where(kept, value - mean[None, :], 0.0)
    to = parts + (frame * tl.num_programs(0) + tl.program_id(0)) * (2 * C) + channel
    tl.store(to, mean, mask=channel < C)
    tl.store(to + C, tl.sum(off * off, 0), mask=channel < C)


@triton.jit
def _join(
    parts,
    joined,
    pixels,
    count,
    eps,
    C: tl.constexpr,
    PIXELS: tl.constexpr,
    PARTS: tl.constexpr,
    SOME: tl.constexpr,
):
    # Some channels: the mean of all means, then all deviations about it.
    frame = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * SOME + tl.arange(0, SOME)
    kept = (channel < C)[None, :]
    at = parts + frame * count * (2 * C) + channel[None, :]
    total = tl.zeros((PARTS, SOME), tl.float32)
    first = 0
    while first < count:
        part = first + tl.arange(0, PARTS)[:, None]
        share = tl.maximum(tl.minimum(pixels - part * PIXELS, PIXELS), 0).to(tl.float32)
        total += share * tl.load(at + part * (2 * C), mask=kept & (part < count), other=0.0)
        first += PARTS
    mean = tl.sum(total, 0) / pixels
    total = tl.zeros((PARTS, SOME), tl.float32)
    first = 0
    while first < count:
        part = first + tl.arange(0, PARTS)[:, None]
        share = tl.maximum(tl.minimum(pixels - part * PIXELS, PIXELS), 0).to(tl.float32)
        real = kept & (part < count)
        off = tl.load(at + part * (2 * C), mask=real, other=0.0) - mean[None, :]
        total += tl.load(at + part * (2 * C) + C, mask=real, other=0.0) + share * off * off
        first += PARTS
    to = joined + frame * (2 * C) + channel
    tl.store(to, mean, mask=channel < C)
    tl.store(to + C, 1 / tl.sqrt(tl.sum(total, 0) / pixels + eps), mask=channel < C)


@triton.jit
def _apply(
    x,
    joined,
    rest,
    out,
    pixels,
    C: tl.constexpr,
    NORM: tl.constexpr,
    RELU: tl.constexpr,
    REST: tl.constexpr,
    LANES: tl.constexpr,
    PIXELS: tl.constexpr,
):
    frame = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, LANES)
    kept = (pixel < pixels)[:, None] & (channel < C)[None, :]
    at = (frame * pixels + pixel)[:, None] * C + channel[None, :]
    value = tl.load(x + at, mask=kept, other=0.0).to(tl.float32)
    if NORM:
        of = joined + frame * (2 * C) + channel
        mean = tl.load(of, mask=channel < C, other=0.0)
        scale = tl.load(of + C, mask=channel < C, other=0.0)
        value = (value - mean[None, :]) * scale[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    if REST:
        value = tl.maximum(value + tl.load(rest + at, mask=kept, other=0.0).to(tl.float32), 0.0)
    tl.store(out + at, value.to(out.dtype.element_ty), mask=kept)


def normalise(x: Tensor, *, norm: bool, relu: bool, rest: Tensor | None = None) -> Tensor:
    """relu(rest + relu(instance_norm(x))), each part if asked for; x: (b, c, h, w), channels last."""
    b, c, h, w = x.shape
    x = x.contiguous(memory_format=torch.channels_last)
    out = torch.empty_like(x)
    lanes, pixels = triton.next_power_of_2(c), h * w
    grid = (triton.cdiv(pixels, PIXELS), b)
    with torch.cuda.device_of(x):
        joined = x
        if norm:
            parts = x.new_empty(b, grid[0], 2, c, dtype=torch.float32)
            joined = x.new_empty(b, 2, c, dtype=torch.float32)
            _moments[grid](x, parts, pixels, C=c, LANES=lanes, PIXELS=PIXELS, num_warps=WARPS)
            _join[(triton.cdiv(c, SOME), b)](
                *(parts, joined, pixels, grid[0], EPS),
                C=c,
                PIXELS=PIXELS,
                PARTS=128,
                SOME=SOME,
                num_warps=WARPS,
            )
        if rest is not None:
            rest = rest.contiguous(memory_format=torch.channels_last)
        _apply[grid](
            *(x, joined, x if rest is None else rest, out, pixels),
            C=c,
            NORM=norm,
            RELU=relu,
            REST=rest is not None,
            LANES=lanes,
            PIXELS=PIXELS,
            num_warps=WARPS,
        )
    return out

"""The projected volume without the channel-deep one: products live in registers only.

A program takes a tile of pixels and one column of offsets. For each offset it multiplies the tile of
f1 with f2 shifted, activates, and mixes channels by a matrix product with the weight. README.md
derives the backward pass.

A pixel and offset take 2·c·(o + 1) operations and write o numbers; f2 is read u·v times, from the
caches. With c = 64, o = 16 in float32 that is 34 operations a byte written: arithmetic binds without
TF32, the caches with it. Of memory it takes o/c of what the channel-deep volume takes, which the
torch path holds twice in training.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS, CHANNELS, WARPS = 64, 32, 4


@triton.jit
def _shifted(f, pixel, h, w, dx, dy, channel, C: tl.constexpr):
    """f at pixels moved by (dx, dy), [pixels, channels], zero out of view; and who is in view."""
    x = pixel % w + dx
    y = pixel // w + dy
    seen = (pixel < h * w) & (x >= 0) & (x < w) & (y >= 0) & (y < h)
    at = channel.to(tl.int64)[None, :] * (h * w) + (y * w + x)[:, None]
    return tl.load(f + at, mask=seen[:, None] & (channel < C)[None, :], other=0.0), seen


@triton.jit
def _forward(
    f1,
    f2,
    weight,
    out,
    h,
    w,
    slope,
    C: tl.constexpr,
    O: tl.constexpr,
    U: tl.constexpr,
    V: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MIXED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    i = tl.program_id(1)
    frame = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    o = tl.arange(0, MIXED)
    f1 += frame * C * h * w
    f2 += frame * C * h * w
    for j in range(V):
        mixed = tl.zeros((PIXELS, MIXED), tl.float32)
        for k in range(0, C, CHANNELS):
            channel = k + tl.arange(0, CHANNELS)
            here, _ = _shifted(f1, pixel, h, w, 0, 0, channel, C)
            there, _ = _shifted(f2, pixel, h, w, i - U // 2, j - V // 2, channel, C)
            p = here.to(tl.float32) * there.to(tl.float32)
            p = tl.where(p > 0, p, p * slope)
            P = tl.load(
                weight + o[None, :] * C + channel[:, None],
                mask=(channel < C)[:, None] & (o < O)[None, :],
                other=0.0,
            )
            mixed = tl.dot(p.to(P.dtype), P, mixed, input_precision=PRECISION)
        to = out + ((frame * O + o[None, :]) * (U * V) + i * V + j) * (h * w) + pixel[:, None]
        kept = (pixel < h * w)[:, None] & (o < O)[None, :]
        tl.store(to, mixed.to(out.dtype.element_ty), mask=kept)


@triton.jit
def _backward(
    own,
    other,
    weight,
    grad,
    out,
    partial,
    h,
    w,
    slope,
    C: tl.constexpr,
    O: tl.constexpr,
    U: tl.constexpr,
    V: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
    MIXED: tl.constexpr,
    PRECISION: tl.constexpr,
    SECOND: tl.constexpr,
):
    frame = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    o = tl.arange(0, MIXED)
    here, inside = _shifted(own + frame * C * h * w, pixel, h, w, 0, 0, channel, C)
    here = here.to(tl.float32)
    other += frame * C * h * w
    grad += frame * O * (U * V) * h * w
    P = tl.load(
        weight + o[:, None] * C + channel[None, :],
        mask=(channel < C)[None, :] & (o < O)[:, None],
        other=0.0,
    )
    sums = tl.zeros((PIXELS, CHANNELS), tl.float32)
    of_weight = tl.zeros((MIXED, CHANNELS), tl.float32)
    for n in range(U * V):
        dx = n // V - U // 2
        dy = n % V - V // 2
        if SECOND:
            # A pixel of f2 is seen by the pixels whose offset leads to it.
            there, seen = _shifted(other, pixel, h, w, -dx, -dy, channel, C)
            at = pixel - dy * w - dx
        else:
            there, seen = _shifted(other, pixel, h, w, dx, dy, channel, C)
            at = pixel
        there = there.to(tl.float32)
        p = here * there
        place = (o.to(tl.int64)[None, :] * (U * V) + n) * (h * w) + at[:, None]
        g = tl.load(grad + place, mask=seen[:, None] & (o < O)[None, :], other=0.0)
        by_product = tl.dot(g, P, input_precision=PRECISION)
        sums += tl.where(p > 0, by_product, by_product * slope) * there
        if not SECOND:
            active = tl.where(p > 0, p, p * slope).to(g.dtype)
            of_weight = tl.dot(tl.trans(g), active, of_weight, input_precision=PRECISION)
    to = out + frame * C * h * w + channel.to(tl.int64)[None, :] * (h * w) + pixel[:, None]
    kept = inside[:, None] & (channel < C)[None, :]
    tl.store(to, sums.to(out.dtype.element_ty), mask=kept)
    if not SECOND:
        tile = frame * tl.num_programs(0) + tl.program_id(0)
        to = partial + (tile * O + o[:, None]) * C + channel[None, :]
        tl.store(to, of_weight, mask=(o < O)[:, None] & (channel < C)[None, :])


def projected_cost_volume(
    f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, *, slope: float
) -> Tensor:
    """See `lcv.cost_volume.projected.projected_cost_volume`."""
    return projected_op(f1, f2, weight, u, v, slope)


@torch.library.custom_op("lcv::projected_cost_volume", mutates_args=())
def projected_op(f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, slope: float) -> Tensor:
    """Activated products with a window, mixed: (b, o, u, v, h, w)."""
    b, _, h, w = f1.shape
    out = f1.new_empty(b, weight.shape[0], u, v, h, w)
    given = (f1.contiguous(), f2.contiguous(), weight.to(f1.dtype).contiguous(), out)
    _launch(_forward, given, (b, h, w), u, v, slope, u)
    return out


@projected_op.register_fake
def _(f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, slope: float) -> Tensor:
    b, _, h, w = f1.shape
    return f1.new_empty(b, weight.shape[0], u, v, h, w)


@torch.library.custom_op("lcv::projected_cost_volume_backward", mutates_args=())
def backward_op(
    grad: Tensor, f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of both maps and of the weight."""
    b, c, h, w = f1.shape
    here, there, P = f1.contiguous(), f2.contiguous(), weight.to(f1.dtype).contiguous()
    grad, grad1, grad2 = grad.contiguous(), torch.empty_like(here), torch.empty_like(there)
    tiles = b * triton.cdiv(h * w, PIXELS)
    partial = f1.new_empty(tiles, *weight.shape, dtype=torch.float32)
    blocks, size = triton.cdiv(c, _channels(c)), (b, h, w)
    given = (here, there, P, grad, grad1, partial)
    _launch(_backward, given, size, u, v, slope, blocks, SECOND=False)
    given = (there, here, P, grad, grad2, partial)
    _launch(_backward, given, size, u, v, slope, blocks, SECOND=True)
    return grad1, grad2, partial.sum(0).to(weight.dtype)


@backward_op.register_fake
def _(
    grad: Tensor, f1: Tensor, f2: Tensor, weight: Tensor, u: int, v: int, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    return f1.new_empty(f1.shape), f2.new_empty(f2.shape), weight.new_empty(weight.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.settings = inputs[3:]


def _of_all(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *backward_op(grad, *ctx.saved_tensors, *ctx.settings), None, None, None


projected_op.register_autograd(_of_all, setup_context=_save)


def _channels(c: int) -> int:
    return min(CHANNELS, max(16, triton.next_power_of_2(c)))


def _launch(kernel, given, size, u, v, slope, second, **more) -> None:  # type: ignore[no-untyped-def]
    b, h, w = size
    mixed, c = given[2].shape
    tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
    with torch.cuda.device_of(given[0]):
        kernel[(triton.cdiv(h * w, PIXELS), second, b)](
            *(*given, h, w, slope),
            C=c,
            O=mixed,
            U=u,
            V=v,
            PIXELS=PIXELS,
            CHANNELS=_channels(c),
            MIXED=max(16, triton.next_power_of_2(mixed)),
            PRECISION="tf32" if tf32 else "ieee",
            num_warps=WARPS,
            **more,
        )

"""The local cost volume by products of short tiles, as `torch_impl.py` has it, in one kernel.

A program multiplies T pixels of a row of f1 with the T + u − 1 pixels of one row of f2 that their
windows reach, and keeps the band of u diagonals. The backward pass is the same product with the
gradient laid on the band, once for each map, so nothing is added atomically. Of float32 maps the rows
of a gradient are added in float64: one float32 sum over a whole window erred more than twice as much as
torch's.

A pixel's costs take 2·u·v·c operations that are wanted and 32/u times as many that are made (T = 16,
u = 9), and u·v numbers are written; both maps are read from memory once and then from the L2 cache.
For c = 256 in half precision writing binds; in float32 without TF32 the arithmetic does.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE, CHANNELS, WARPS = 16, 64, 4


@triton.jit
def _forward(
    f1,
    f2,
    out,
    h,
    w,
    scale,
    out_i,
    out_j,
    C: tl.constexpr,
    U: tl.constexpr,
    V: tl.constexpr,
    TILE: tl.constexpr,
    SPAN: tl.constexpr,
    CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    y = tl.program_id(1)
    frame = (tl.program_id(2) // V).to(tl.int64)
    j = tl.program_id(2) % V
    t = tl.arange(0, TILE)
    s = tl.arange(0, SPAN)
    x = tl.program_id(0) * TILE + t
    there = tl.program_id(0) * TILE - U // 2 + s
    below = y + j - V // 2
    seen = (there >= 0) & (there < w) & (below >= 0) & (below < h)
    f1 += frame * C * h * w + y * w
    f2 += frame * C * h * w + below * w
    costs = tl.zeros((TILE, SPAN), tl.float32)
    for k in range(0, C, CHANNELS):
        channel = (k + tl.arange(0, CHANNELS)).to(tl.int64)
        some = channel < C
        a = tl.load(
            f1 + channel[None, :] * (h * w) + x[:, None],
            mask=some[None, :] & (x < w)[:, None],
            other=0.0,
        )
        b = tl.load(
            f2 + channel[:, None] * (h * w) + there[None, :],
            mask=some[:, None] & seen[None, :],
            other=0.0,
        )
        costs = tl.dot(a, b, costs, input_precision=PRECISION)
    i = s[None, :] - t[:, None]
    to = out + frame * (U * V) * h * w + y * w + j.to(tl.int64) * out_j
    to += i.to(tl.int64) * out_i + x[:, None]
    kept = (i >= 0) & (i < U) & (x < w)[:, None]
    tl.store(to, (costs * scale).to(out.dtype.element_ty), mask=kept)


@triton.jit
def _backward(
    grad,
    other,
    out,
    h,
    w,
    scale,
    out_i,
    out_j,
    C: tl.constexpr,
    U: tl.constexpr,
    V: tl.constexpr,
    TILE: tl.constexpr,
    SPAN: tl.constexpr,
    CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
    SECOND: tl.constexpr,
):
    BLOCKS: tl.constexpr = (C + CHANNELS - 1) // CHANNELS
    y = tl.program_id(1)
    frame = (tl.program_id(2) // BLOCKS).to(tl.int64)
    channel = ((tl.program_id(2) % BLOCKS) * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)
    some = channel < C
    t = tl.arange(0, TILE)
    s = tl.arange(0, SPAN)
    x = tl.program_id(0) * TILE + t
    there = tl.program_id(0) * TILE - U // 2 + s
    grad += frame * (U * V) * h * w
    other += frame * C * h * w
    exact = tl.float64 if other.dtype.element_ty == tl.float32 else tl.float32
    sums = tl.zeros((TILE, CHANNELS), exact)
    for j in range(V):
        # A pixel of f2 is seen from the other side: by pixels whose offset leads to it.
        if SECOND:
            row = y - (j - V // 2)
            i = t[:, None] - s[None, :] + (U - 1)
            at = row * w + there[None, :]
        else:
            row = y + (j - V // 2)
            i = s[None, :] - t[:, None]
            at = y * w + x[:, None]
        seen = (there >= 0) & (there < w) & (row >= 0) & (row < h)
        kept = (i >= 0) & (i < U) & (x < w)[:, None] & seen[None, :]
        place = i.to(tl.int64) * out_i + j * out_j + at
        band = tl.load(grad + place, mask=kept, other=0.0)
        f = tl.load(
            other + channel[None, :] * (h * w) + (row * w + there)[:, None],
            mask=some[None, :] & seen[:, None],
            other=0.0,
        )
        sums += tl.dot(band, f, input_precision=PRECISION).to(exact)
    to = out + frame * C * h * w + channel[None, :] * (h * w) + (y * w + x)[:, None]
    kept = some[None, :] & (x < w)[:, None]
    tl.store(to, (sums * scale).to(out.dtype.element_ty), mask=kept)


def local_cost_volume(
    f1: Tensor, f2: Tensor, u: int, v: int, *, scale: float, keep_channels: bool, x_outer: bool
) -> Tensor:
    """See `lcv.cost_volume.local.local_cost_volume`; summed channels only."""
    assert not keep_channels
    return local_op(f1, f2, u, v, scale, x_outer)


@torch.library.custom_op("lcv::local_cost_volume", mutates_args=())
def local_op(f1: Tensor, f2: Tensor, u: int, v: int, scale: float, x_outer: bool) -> Tensor:
    """Costs of a window around each pixel, (b, u, v, h, w) or (b, v, u, h, w)."""
    out = _empty(f1, u, v, x_outer)
    _launch(_forward, f1.contiguous(), f2.contiguous(), out, f1, u, v, scale, x_outer, v)
    return out


@local_op.register_fake
def _(f1: Tensor, f2: Tensor, u: int, v: int, scale: float, x_outer: bool) -> Tensor:
    return _empty(f1, u, v, x_outer)


@torch.library.custom_op("lcv::local_cost_volume_backward", mutates_args=())
def backward_op(
    grad: Tensor, f1: Tensor, f2: Tensor, u: int, v: int, scale: float, x_outer: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of both maps."""
    grad = grad.contiguous()
    grads = (f1.new_empty(f1.shape), f2.new_empty(f2.shape))
    blocks = triton.cdiv(f1.shape[1], _channels(f1.shape[1]))
    for other, out in zip((f2, f1), grads, strict=True):
        given = (grad, other.contiguous(), out, f1, u, v, scale, x_outer, blocks)
        _launch(_backward, *given, SECOND=other is f1)
    return grads


@backward_op.register_fake
def _(
    grad: Tensor, f1: Tensor, f2: Tensor, u: int, v: int, scale: float, x_outer: bool
) -> tuple[Tensor, Tensor]:
    return f1.new_empty(f1.shape), f2.new_empty(f2.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.settings = inputs[2:]


def _of_both(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    grad1, grad2 = backward_op(grad, *ctx.saved_tensors, *ctx.settings)
    return grad1, grad2, None, None, None, None


local_op.register_autograd(_of_both, setup_context=_save)


def _empty(f1: Tensor, u: int, v: int, x_outer: bool) -> Tensor:
    b, _, h, w = f1.shape
    return f1.new_empty(b, *((u, v) if x_outer else (v, u)), h, w)


def _channels(c: int) -> int:
    return min(CHANNELS, max(16, triton.next_power_of_2(c)))


def _launch(kernel, first, second, out, f1, u, v, scale, x_outer, last, **more) -> None:  # type: ignore[no-untyped-def]
    b, c, h, w = f1.shape
    steps = (v * h * w, h * w) if x_outer else (h * w, u * h * w)
    tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
    with torch.cuda.device_of(f1):
        kernel[(triton.cdiv(w, TILE), h, b * last)](
            *(first, second, out, h, w, scale, *steps),
            C=c,
            U=u,
            V=v,
            TILE=TILE,
            SPAN=max(16, triton.next_power_of_2(TILE + u - 1)),
            CHANNELS=_channels(c),
            PRECISION="tf32" if tf32 else "ieee",
            num_warps=WARPS,
            **more,
        )

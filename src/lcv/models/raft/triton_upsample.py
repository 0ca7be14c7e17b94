"""Convex upsampling in one kernel: nine weights a fine pixel, their softmax, and the mix of flows.

A program takes some coarse pixels and all 64 fine pixels of each, in float32. The logits are read once
and never written: 576·s + 512 bytes a coarse pixel, s = 2 or 4, which memory's bandwidth binds. The
backward pass reads them again and writes their gradients, 1,152·s + 584 bytes.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

PIXELS, WARPS = 8, 4


@triton.jit
def _weights(mask, at, step, kept, factor, n):
    logits = tl.load(mask + at + n * 64 * step, mask=kept, other=0.0).to(tl.float32)
    return logits * factor


@triton.jit
def _place(h, w, PIXELS: tl.constexpr):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    fine = tl.arange(0, 64)
    x = pixel % w
    y = pixel // w
    kept = (pixel < h * w)[:, None] & (fine < 64)[None, :]
    to = (y[:, None] * 8 + fine[None, :] // 8) * (8 * w) + x[:, None] * 8 + fine[None, :] % 8
    return pixel, fine, x, y, kept, to


@triton.jit
def _neighbour(flow, pixel, x, y, h, w, n):
    """Eight times the flow of the n-th of nine neighbours, both components, zero outside."""
    dx = n % 3 - 1
    dy = n // 3 - 1
    seen = (pixel < h * w) & (x + dx >= 0) & (x + dx < w) & (y + dy >= 0) & (y + dy < h)
    at = flow + pixel + dy * w + dx
    u = 8 * tl.load(at, mask=seen, other=0.0)
    v = 8 * tl.load(at + h * w, mask=seen, other=0.0)
    return u[:, None], v[:, None]


@triton.jit
def _forward(flow, mask, out, h, w, factor, frame_step, step, pixel_step, PIXELS: tl.constexpr):
    frame = tl.program_id(1).to(tl.int64)
    pixel, fine, x, y, kept, to = _place(h, w, PIXELS)
    flow += frame * 2 * h * w
    at = frame * frame_step + pixel[:, None].to(tl.int64) * pixel_step + fine[None, :] * step
    most = _weights(mask, at, step, kept, factor, 0)
    for n in tl.static_range(1, 9):
        most = tl.maximum(most, _weights(mask, at, step, kept, factor, n))
    total = tl.zeros(kept.shape, tl.float32)
    sum_u = tl.zeros(kept.shape, tl.float32)
    sum_v = tl.zeros(kept.shape, tl.float32)
    for n in tl.static_range(9):
        share = tl.exp(_weights(mask, at, step, kept, factor, n) - most)
        u, v = _neighbour(flow, pixel, x, y, h, w, n)
        total += share
        sum_u += share * u
        sum_v += share * v
    out += frame * 2 * 64 * h * w
    tl.store(out + to, sum_u / total, mask=kept)
    tl.store(out + to + 64 * h * w, sum_v / total, mask=kept)


@triton.jit
def _backward(
    flow,
    mask,
    grad,
    grad_mask,
    around,
    h,
    w,
    factor,
    frame_step,
    step,
    pixel_step,
    PIXELS: tl.constexpr,
):
    frame = tl.program_id(1).to(tl.int64)
    pixel, fine, x, y, kept, to = _place(h, w, PIXELS)
    flow += frame * 2 * h * w
    at = frame * frame_step + pixel[:, None].to(tl.int64) * pixel_step + fine[None, :] * step
    of = grad + frame * 2 * 64 * h * w + to
    grad_u = tl.load(of, mask=kept, other=0.0)
    grad_v = tl.load(of + 64 * h * w, mask=kept, other=0.0)
    most = _weights(mask, at, step, kept, factor, 0)
    for n in tl.static_range(1, 9):
        most = tl.maximum(most, _weights(mask, at, step, kept, factor, n))
    total = tl.zeros(kept.shape, tl.float32)
    mean = tl.zeros(kept.shape, tl.float32)
    for n in tl.static_range(9):
        share = tl.exp(_weights(mask, at, step, kept, factor, n) - most)
        u, v = _neighbour(flow, pixel, x, y, h, w, n)
        total += share
        mean += share * (grad_u * u + grad_v * v)
    mean /= total
    around += frame * 18 * h * w + pixel
    for n in tl.static_range(9):
        share = tl.exp(_weights(mask, at, step, kept, factor, n) - most) / total
        u, v = _neighbour(flow, pixel, x, y, h, w, n)
        slope = factor * share * (grad_u * u + grad_v * v - mean)
        to_mask = grad_mask + at + n * 64 * step
        tl.store(to_mask, slope.to(grad_mask.dtype.element_ty), mask=kept)
        inside = pixel < h * w
        tl.store(around + n * h * w, 8 * tl.sum(share * grad_u, 1), mask=inside)
        tl.store(around + (9 + n) * h * w, 8 * tl.sum(share * grad_v, 1), mask=inside)


@torch.library.custom_op("lcv::convex_upsample", mutates_args=())
def upsample_op(flow: Tensor, mask: Tensor, factor: float) -> Tensor:
    """flow (b, 2, h, w) float32, mask (b, 576, h, w) logits, times factor → (b, 2, 8h, 8w)."""
    b, _, h, w = flow.shape
    out = flow.new_empty(b, 2, 8 * h, 8 * w)
    _launch(_forward, (flow.contiguous(), _dense(mask), out), mask, factor)
    return out


@upsample_op.register_fake
def _(flow: Tensor, mask: Tensor, factor: float) -> Tensor:
    b, _, h, w = flow.shape
    return flow.new_empty(b, 2, 8 * h, 8 * w)


@torch.library.custom_op("lcv::convex_upsample_backward", mutates_args=())
def backward_op(grad: Tensor, flow: Tensor, mask: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Gradients of the nine neighbours' flows, (b, 18, h·w), and of the mask."""
    b, _, h, w = flow.shape
    around = flow.new_empty(b, 18, h * w)
    mask = _dense(mask)
    grad_mask = torch.empty_like(mask)
    given = (flow.contiguous(), mask, grad.contiguous(), grad_mask, around)
    _launch(_backward, given, mask, factor)
    return around, grad_mask


@backward_op.register_fake
def _(grad: Tensor, flow: Tensor, mask: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    b, _, h, w = flow.shape
    return flow.new_empty(b, 18, h * w), torch.empty_like(_dense(mask))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    flow, mask, ctx.factor = inputs
    ctx.save_for_backward(flow, mask)


def _of_both(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    flow, mask = ctx.saved_tensors
    around, grad_mask = backward_op(grad, flow, mask, ctx.factor)
    grad_flow = F.fold(around, flow.shape[-2:], 3, padding=1)
    return grad_flow, grad_mask, None


upsample_op.register_autograd(_of_both, setup_context=_save)


def _dense(mask: Tensor) -> Tensor:
    """With channels together or apart, but nothing between them."""
    whole = mask.is_contiguous() or mask.is_contiguous(memory_format=torch.channels_last)
    return mask if whole else mask.contiguous()


def _launch(kernel: Any, given: tuple[Tensor, ...], mask: Tensor, factor: float) -> None:
    b, _, h, w = given[0].shape
    frame, channel, _, pixel = given[1].stride()
    with torch.cuda.device_of(mask):
        kernel[(triton.cdiv(h * w, PIXELS), b)](
            *(*given, h, w, factor, frame, channel, pixel), PIXELS=PIXELS, num_warps=WARPS
        )

"""RAFT's update block in channels-last kernels: a convolution, and what follows it, in one pass each.

A convolution is a matrix product over pixels, the taps of the kernel and the channels, which lie
together in memory; no patch is ever written out. What follows (bias, ReLU, gates, the blend, the step
of the flow) is done to the sums while they are in registers, and results go straight to the channels
of the buffer that the next convolution reads. `fused.py` says the same in torch, and is the truth.

An iteration of the large network at 55×128 is 31 GFLOP of products in eleven launches of 110 to 330
programs each, for 132 processors. Weights (10 MB) and activations stay in the L2 cache. A program's
loop over K takes 1,152 to 2,304 numbers, so that filling and draining it costs little; arithmetic
binds, and below it the latency of a launch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LINEAR, RELU, GATES, BLEND, STEP = range(5)
STAGES = 4


@triton.jit
def _convolve(
    x,
    weight,
    bias,
    out,
    also,
    context,
    z,
    hidden,
    coords,
    h,
    w,
    x_frame,
    x_pixel,
    x_channel,
    out_pixel,
    also_pixel,
    context_pixel,
    z_pixel,
    hidden_pixel,
    outputs,
    row,
    C: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    AFTER: tl.constexpr,
    ALSO: tl.constexpr,
    FEW: tl.constexpr,
    SUMMED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    frame = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    pixels = h * w
    px = m % w
    py = m // w
    x += frame * x_frame
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    if SUMMED:
        at = m[:, None] * x_pixel + n[None, :]
        seen = (m < pixels)[:, None] & (n < outputs)[None, :]
        sums = tl.load(x + at, mask=seen, other=0.0).to(tl.float32)
    elif FEW:
        # Few channels: taps and channels are one axis, and every number is fetched for itself.
        for first in range(0, KH * KW * C, BK):
            tap = (first + k) // C
            dy = tap // KW - KH // 2
            dx = tap % KW - KW // 2
            seen = (m < pixels)[:, None] & (tap < KH * KW)[None, :]
            seen &= (py[:, None] + dy[None, :] >= 0) & (py[:, None] + dy[None, :] < h)
            seen &= (px[:, None] + dx[None, :] >= 0) & (px[:, None] + dx[None, :] < w)
            at = (m[:, None] + (dy * w + dx)[None, :]) * x_pixel
            at += (((first + k) % C) * x_channel)[None, :]
            a = tl.load(x + at, mask=seen, other=0.0).to(weight.dtype.element_ty)
            b = tl.load(
                weight + (first + k)[:, None] * row + n[None, :],
                mask=(first + k < KH * KW * C)[:, None] & (n < row)[None, :],
                other=0.0,
            )
            sums = tl.dot(a, b, sums)
    else:
        BLOCKS: tl.constexpr = C // BK
        for step in range(KH * KW * BLOCKS):
            tap = step // BLOCKS
            dy = tap // KW - KH // 2
            dx = tap % KW - KW // 2
            seen = (m < pixels) & (py + dy >= 0) & (py + dy < h) & (px + dx >= 0) & (px + dx < w)
            at = (m + dy * w + dx) * x_pixel + (step % BLOCKS) * BK
            a = tl.load(x + at[:, None] + k[None, :], mask=seen[:, None], other=0.0)
            b = tl.load(
                weight + (step * BK + k)[:, None] * row + n[None, :],
                mask=(n < row)[None, :],
                other=0.0,
            )
            sums = tl.dot(a, b, sums)
    kept = (m < pixels)[:, None] & (n < outputs)[None, :]
    point = frame * pixels + m[:, None]
    if (AFTER == 2) or (AFTER == 3):
        sums += tl.load(context + point * context_pixel + n[None, :], mask=kept, other=0.0).to(
            tl.float32
        )
    else:
        sums += tl.load(bias + n, mask=n < outputs, other=0.0).to(tl.float32)[None, :]
    if AFTER == 1:
        sums = tl.maximum(sums, 0.0)
    if AFTER <= 1:
        tl.store(out + point * out_pixel + n[None, :], sums.to(out.dtype.element_ty), mask=kept)
        if ALSO:
            tl.store(
                also + point * also_pixel + n[None, :], sums.to(also.dtype.element_ty), mask=kept
            )
    elif AFTER == 2:
        half = outputs // 2
        # The first half of the channels is z, the second r, of which r·h is wanted.
        gate = tl.sigmoid(sums)
        first = kept & (n < half)[None, :]
        rest = kept & (n >= half)[None, :]
        tl.store(z + point * z_pixel + n[None, :], gate.to(z.dtype.element_ty), mask=first)
        at = hidden + point * hidden_pixel + (n - half)[None, :]
        old = tl.load(at, mask=rest, other=0.0).to(tl.float32)
        at = out + point * out_pixel + (n - half)[None, :]
        tl.store(at, (gate * old).to(out.dtype.element_ty), mask=rest)
    elif AFTER == 3:
        new = 2 * tl.sigmoid(2 * sums) - 1
        at = hidden + point * hidden_pixel + n[None, :]
        old = tl.load(at, mask=kept, other=0.0).to(tl.float32)
        share = tl.load(z + point * z_pixel + n[None, :], mask=kept, other=0.0).to(tl.float32)
        tl.store(at, (old + share * (new - old)).to(hidden.dtype.element_ty), mask=kept)
    else:
        # hidden is the flow here, z unused; both are planes of float32.
        at = frame * 2 * pixels + n[None, :] * pixels + m[:, None]
        flow = tl.load(hidden + at, mask=kept, other=0.0) + sums
        tl.store(hidden + at, flow, mask=kept)
        here = tl.where(n[None, :] == 0, px[:, None], py[:, None]).to(tl.float32)
        tl.store(coords + at, here + flow, mask=kept)
        tl.store(out + point * out_pixel + n[None, :], flow.to(out.dtype.element_ty), mask=kept)
        tl.store(also + point * also_pixel + n[None, :], flow.to(also.dtype.element_ty), mask=kept)


def by_library(pixels: int, inputs: int, outputs: int, kernel: tuple[int, int]) -> bool:
    """Whether cuDNN's convolution, and what follows it in a kernel of its own, is the faster."""
    return False


def tiles(pixels: int, outputs: int) -> tuple[int, int, int]:
    """BM, BN and warps: small tiles where there are few, so that no processor idles."""
    if outputs <= 16:
        return 64, 16, 4
    if pixels * outputs >= 128 * 128 * 264:
        return 128, 128 if outputs > 64 else 64, 8
    return 64, 128 if outputs > 192 else 64, 4


def launch(
    after: int,
    x: Tensor,
    packed: Tensor,
    kernel: tuple[int, int],
    outputs: int,
    given: dict[str, Tensor | None],
    *,
    planes: bool = False,
    summed: bool = False,
) -> None:
    """One convolution with what follows it.

    x: (b, h, w, c), channels together; or planes (b, c, h, w) of few channels; or, summed, what a
    library has convolved already
    packed: (kh·kw·c, outputs or more)
    given: what follows needs of bias, out, also, context, z, hidden and coords
    """
    if planes:
        b, c, h, w = x.shape
        pixel, channel = 1, h * w
    else:
        b, h, w, c = x.shape
        pixel, channel = x.stride(2), 1
    bm, bn, warps = tiles(b * h * w, outputs)
    names = ("bias", "out", "also", "context", "z", "hidden", "coords")
    tensors = [given.get(name) for name in names]
    pitches = (0 if t is None else t.stride(2) for t in tensors[1:6])
    with torch.cuda.device_of(x):
        _convolve[(triton.cdiv(h * w, bm), triton.cdiv(outputs, bn), b)](
            *(x, packed, *(x if t is None else t for t in tensors)),
            *(h, w, x.stride(0), pixel, channel, *pitches, outputs, packed.shape[1]),
            C=c,
            KH=kernel[0],
            KW=kernel[1],
            AFTER=after,
            ALSO=given.get("also") is not None,
            FEW=planes,
            SUMMED=summed,
            BM=bm,
            BN=bn,
            BK=64 if not planes and c % 64 == 0 else 32,
            num_warps=warps,
            num_stages=STAGES,
        )

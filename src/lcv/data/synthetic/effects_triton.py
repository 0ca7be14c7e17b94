"""Sharpening, light and noise as in `effects.py`, in one GPU kernel.

Nearly every frame gets all three. One by one, in torch, they read and write it a hundred times; here it
is read once (its neighbours come from the cache) and written once, and noise is not stored.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from lcv.data.random import GAMMA_SIGNED, MULTIPLIER_1, MULTIPLIER_2, Draws
from lcv.data.synthetic.effects import (
    LANES,
    is_lit,
    lights,
    noise_name,
    noise_sigma,
    sharpening,
    spread,
)
from lcv.data.synthetic.settings import Recipe

BLOCK, WARPS = 512, 4
COLUMNS = 10  # of a scene: amount, sigma, touched, gamma, three gains, three offsets

_GAMMA = tl.constexpr(GAMMA_SIGNED)
_ONE = tl.constexpr(MULTIPLIER_1)
_TWO = tl.constexpr(MULTIPLIER_2)
_LANES = tl.constexpr(LANES)
_COLUMNS = tl.constexpr(COLUMNS)


def on_all(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """The frames (n, 3, h, w) of n scenes: what sharpen, light and add_noise would make of them."""
    times, nothing = len(frames), frames[0].new_zeros(len(draws), 1)
    amount = sharpening(recipe, draws).flatten(1) if recipe.sharpen > 0 else nothing
    sigma = noise_sigma(recipe, draws).flatten(1) if recipe.noise > 0 else nothing
    lit = lights(recipe, draws, times) if is_lit(recipe) else None
    out = []
    for time, frame in enumerate(frames):
        columns, shade = [amount, sigma], frame
        if lit is not None:
            here = lit[time]
            columns += [x.flatten(1) for x in (here.touched, here.gamma, here.gain, here.offset)]
            shade = spread(here.shade, frame)
        table = torch.cat([*columns, nothing.expand(-1, COLUMNS)], 1)[:, :COLUMNS].contiguous()
        start = draws.start(noise_name(time))
        out.append(_one(frame.contiguous(), shade, table, start, recipe))
    return out


def _one(frame: Tensor, shade: Tensor, table: Tensor, start: Tensor, recipe: Recipe) -> Tensor:
    n, _, h, w = frame.shape
    out = torch.empty_like(frame)
    with torch.cuda.device_of(frame):
        _on_all[(triton.cdiv(h * w, BLOCK), n)](
            *(frame, shade, table, start, out, h, w),
            SHARPEN=recipe.sharpen > 0,
            LIGHT=is_lit(recipe),
            NOISE=recipe.noise > 0,
            BLOCK=BLOCK,
            num_warps=WARPS,
        )
    return out


@triton.jit
def _mix(x):
    """`lcv.data.random.mix`."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * _ONE
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * _TWO
    return x ^ ((x >> 31) & ((1 << 33) - 1))


@triton.jit
def _binomial(a, b, c, d, e):
    return ((a + e) + 4 * (b + d) + 6 * c) * 0.0625


@triton.jit
def _row(plane, y, x, h, w, valid):
    """Five neighbours of each pixel in the row y, weighted; beyond the border is the border."""
    at = plane + tl.minimum(tl.maximum(y, 0), h - 1) * w
    return _binomial(
        tl.load(at + tl.maximum(x - 2, 0), mask=valid, other=0.0),
        tl.load(at + tl.maximum(x - 1, 0), mask=valid, other=0.0),
        tl.load(at + x, mask=valid, other=0.0),
        tl.load(at + tl.minimum(x + 1, w - 1), mask=valid, other=0.0),
        tl.load(at + tl.minimum(x + 2, w - 1), mask=valid, other=0.0),
    )


@triton.jit
def _on_all(
    frames,
    shades,
    table,
    starts,
    out,
    h,
    w,
    SHARPEN: tl.constexpr,
    LIGHT: tl.constexpr,
    NOISE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = pixel < h * w
    x = pixel % w
    y = pixel // w
    row = table + n * _COLUMNS
    if NOISE:
        sigma = tl.load(row + 1) * 0.015625
        word = _mix(tl.load(starts + n) + pixel.to(tl.int64) * _GAMMA)
        grains = (word & _LANES) + ((word >> 7) & _LANES) + ((word >> 14) & _LANES)
    for c in tl.static_range(3):
        plane = frames + (n * 3 + c) * h * w
        value = tl.load(plane + pixel, mask=valid, other=0.0)
        if SHARPEN:
            blurred = _binomial(
                _row(plane, y - 2, x, h, w, valid),
                _row(plane, y - 1, x, h, w, valid),
                _row(plane, y, x, h, w, valid),
                _row(plane, y + 1, x, h, w, valid),
                _row(plane, y + 2, x, h, w, valid),
            )
            value += (value - blurred) * tl.load(row)
            value = tl.minimum(tl.maximum(value, 0.0), 255.0)
        if LIGHT:
            varied = tl.load(shades + n * h * w + pixel, mask=valid, other=0.0)
            bright = tl.exp2(tl.log2(tl.maximum(value * (1 / 255), 1e-4)) * tl.load(row + 3))
            bright = tl.load(row + 7 + c) + bright * (tl.load(row + 4 + c) * 255) * varied
            value = tl.where(tl.load(row + 2) > 0, bright, value)
        if NOISE:
            value += (((grains >> (21 * c)) & 511).to(tl.float32) - 190.5) * sigma
        tl.store(out + (n * 3 + c) * h * w + pixel, value, mask=valid)

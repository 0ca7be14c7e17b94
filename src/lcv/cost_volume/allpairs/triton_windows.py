"""Windows of costs read, mixed and put back: the kernels that both lookups share.

A source holds whole-pixel costs of every point of frame 1, in one of two ways:

    all      a row a point, the maps of all levels one after the other (the all-pairs volume)
    window   a row a point, for each level the (2rx+2)×(2ry+2) costs under its window, column after
             column as in the result (on demand)

README.md derives the mixing and its adjoint. A program takes some neighbouring points of a frame
and one level. Positions, weights and sums are float32, and addresses 64 bits wide, whatever the
costs are.

Bytes of a point and level, r = 4, s bytes a number: 10 rows of 10 costs are read, 81 written. A row
spans 1.6 sectors of 32 bytes for s = 2 and 2.2 for s = 4, so 510 or 700 bytes come from memory
where 200 or 400 are wanted; a cost that is read twice or more comes from the L1 cache. The adjoint
reads 81 numbers and reads and writes the 10 rows. Arithmetic is nothing beside: 9 operations a number.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

POINTS, WARPS = 4, 1


@triton.jit
def window_of(coords, frame, pixel, valid, pixels, level, h, w, RX, RY, LEVELS):
    """First column and row of the windows around some points on a level, and their fractions."""
    at = coords + frame.to(tl.int64) * (2 * pixels) + pixel
    x = tl.load(at, mask=valid, other=0.0).to(tl.float32)
    y = tl.load(at + pixels, mask=valid, other=0.0).to(tl.float32)
    exponent = tl.full((), 127, tl.int32) - level
    shrink = (exponent << 23).to(tl.float32, bitcast=True)  # 2^−level, exactly
    # So far out, every level shows nothing but zeros; no infinity, NaN or huge number goes on.
    reach_x = (RX + 2) << LEVELS
    reach_y = (RY + 2) << LEVELS
    px = tl.minimum(tl.maximum(tl.where(x == x, x, 0.0), -reach_x), w + reach_x) * shrink
    py = tl.minimum(tl.maximum(tl.where(y == y, y, 0.0), -reach_y), h + reach_y) * shrink
    x0 = tl.floor(px)
    y0 = tl.floor(py)
    fx = tl.where(x == x, px - x0, x)
    fy = tl.where(y == y, py - y0, y)
    return x0.to(tl.int32) - RX, y0.to(tl.int32) - RY, fx, fy


@triton.jit
def _cells(source, frame, pixel, column, row, i, j, pixels, level, h, w, total, K, L, LEVELS, ALL):
    """Addresses of cells (j, i) of some windows, the steps down and to the right, and the map's position."""
    rows = source + (frame.to(tl.int64) * pixels + pixel)[None, :] * total
    x = column[None, :] + i[:, None]
    y = row[None, :] + j[:, None]
    if ALL:
        start = 0
        for finer in tl.static_range(LEVELS):
            start += tl.where(finer < level, (h >> finer) * (w >> finer), 0)
        down = w >> level
        right = 1
        at = rows + start + y * down + x
    else:
        down = 1
        right = L
        at = rows + level * (K * L) + (i * L + j)[:, None]
    return at, down, right, x, y


@triton.jit
def _load_block(at, down, right, x, y, inside, h, w):
    """The four whole-pixel costs around each read of a window, zero out of view."""
    here = (x >= 0) & (x < w) & inside
    beside = (x >= -1) & (x < w - 1) & inside
    upper = (y >= 0) & (y < h)
    lower = (y >= -1) & (y < h - 1)
    a = tl.load(at, mask=here & upper, other=0.0).to(tl.float32)
    b = tl.load(at + right, mask=beside & upper, other=0.0).to(tl.float32)
    c = tl.load(at + down, mask=here & lower, other=0.0).to(tl.float32)
    d = tl.load(at + (down + right), mask=beside & lower, other=0.0).to(tl.float32)
    return a, b, c, d


@triton.jit
def _read(
    source,
    coords,
    out,
    pixels,
    h,
    w,
    total,
    out_frame,
    out_channel,
    out_pixel,
    RX: tl.constexpr,
    RY: tl.constexpr,
    LEVELS: tl.constexpr,
    ALL: tl.constexpr,
    POINTS: tl.constexpr,
    LANES: tl.constexpr,
):
    U: tl.constexpr = 2 * RX + 1
    V: tl.constexpr = 2 * RY + 1
    K: tl.constexpr = U + 1
    L: tl.constexpr = V + 1
    pixel = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    level = tl.program_id(1)
    frame = tl.program_id(2)
    valid = pixel < pixels
    column, row, fx, fy = window_of(
        coords, frame, pixel, valid, pixels, level, h, w, RX, RY, LEVELS
    )
    fx = fx[None, :]
    fy = fy[None, :]
    lane = tl.arange(0, LANES)
    inside = valid[None, :] & (lane < U * V)[:, None]
    # Costs are read as they lie in memory, and each is mixed with the one below.
    if ALL:
        i = lane % K
        j = lane // K
    else:
        i = lane // V
        j = lane % V
    at, down, _, x, y = _cells(
        *(source, frame, pixel, column, row, i, j, pixels, level, h, w, total),
        *(K, L, LEVELS, ALL),
    )
    seen = valid[None, :] & (lane < K * V)[:, None] & (x >= 0) & (x < (w >> level))
    upper = seen & (y >= 0) & (y < (h >> level))
    lower = seen & (y >= -1) & (y < (h >> level) - 1)
    a = tl.load(at, mask=upper, other=0.0).to(tl.float32)
    c = tl.load(at + down, mask=lower, other=0.0).to(tl.float32)
    a += fy * (c - a)
    # Then lanes go along channels, and each column is mixed with the next.
    if ALL:
        place = tl.minimum((lane % V) * K + lane // V, LANES - 2)[:, None] + tl.zeros_like(x)
        b = tl.gather(a, place + 1, 0)
        a = tl.gather(a, place, 0)
    else:
        place = tl.minimum(lane + V, LANES - 1)[:, None] + tl.zeros_like(x)
        b = tl.gather(a, place, 0)
    cost = a + fx * (b - a)
    channel = level * (U * V) + lane
    to = out + frame.to(tl.int64) * out_frame
    to += pixel[None, :].to(tl.int64) * out_pixel + (channel * out_channel)[:, None]
    tl.store(to, cost.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _gradient(at, i, j, channel_step, V: tl.constexpr, U: tl.constexpr, valid):
    """The gradient of reads (j, i) of some windows, zero where there is no such read."""
    real = (i >= 0) & (i < U) & (j >= 0) & (j < V)
    place = (i * V + j) * channel_step
    return tl.load(at + place[:, None], mask=valid[None, :] & real[:, None], other=0.0).to(
        tl.float32
    )


@triton.jit
def _add(
    target,
    coords,
    grad,
    pixels,
    h,
    w,
    total,
    grad_frame,
    grad_channel,
    grad_pixel,
    RX: tl.constexpr,
    RY: tl.constexpr,
    LEVELS: tl.constexpr,
    ALL: tl.constexpr,
    POINTS: tl.constexpr,
    LANES: tl.constexpr,
):
    U: tl.constexpr = 2 * RX + 1
    V: tl.constexpr = 2 * RY + 1
    K: tl.constexpr = U + 1
    L: tl.constexpr = V + 1
    pixel = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    level = tl.program_id(1)
    frame = tl.program_id(2)
    valid = pixel < pixels
    column, row, fx, fy = window_of(
        coords, frame, pixel, valid, pixels, level, h, w, RX, RY, LEVELS
    )
    lane = tl.arange(0, LANES)
    if ALL:
        i = lane % K
        j = lane // K
    else:
        i = lane // L
        j = lane % L
    at, _, _, x, y = _cells(
        *(target, frame, pixel, column, row, i, j, pixels, level, h, w, total),
        *(K, L, LEVELS, ALL),
    )
    inside = valid[None, :] & (lane < K * L)[:, None]
    inside &= (x >= 0) & (x < (w >> level)) & (y >= 0) & (y < (h >> level))
    of = grad + frame.to(tl.int64) * grad_frame + pixel[None, :].to(tl.int64) * grad_pixel
    of += level * (U * V) * grad_channel
    fx = fx[None, :]
    fy = fy[None, :]
    upper = (1 - fx) * _gradient(of, i, j, grad_channel, V, U, valid)
    upper += fx * _gradient(of, i - 1, j, grad_channel, V, U, valid)
    lower = (1 - fx) * _gradient(of, i, j - 1, grad_channel, V, U, valid)
    lower += fx * _gradient(of, i - 1, j - 1, grad_channel, V, U, valid)
    value = (1 - fy) * upper + fy * lower
    if ALL:
        # Each program has a point and a level of its own, so no other one adds here.
        value += tl.load(at, mask=inside, other=0.0).to(tl.float32)
    tl.store(at, value.to(target.dtype.element_ty), mask=inside)


@triton.jit
def _slopes(
    source,
    coords,
    grad,
    out,
    pixels,
    h,
    w,
    total,
    grad_frame,
    grad_channel,
    grad_pixel,
    RX: tl.constexpr,
    RY: tl.constexpr,
    LEVELS: tl.constexpr,
    ALL: tl.constexpr,
    POINTS: tl.constexpr,
    LANES: tl.constexpr,
):
    U: tl.constexpr = 2 * RX + 1
    V: tl.constexpr = 2 * RY + 1
    pixel = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    frame = tl.program_id(2)
    valid = pixel < pixels
    lane = tl.arange(0, LANES)
    i = lane % U
    j = lane // U
    inside = valid[None, :] & (lane < U * V)[:, None]
    of = grad + frame.to(tl.int64) * grad_frame + pixel[None, :].to(tl.int64) * grad_pixel
    by_x = tl.zeros((POINTS,), tl.float32)
    by_y = tl.zeros((POINTS,), tl.float32)
    for level in tl.static_range(LEVELS):
        column, row, fx, fy = window_of(
            coords, frame, pixel, valid, pixels, level, h, w, RX, RY, LEVELS
        )
        at, down, right, x, y = _cells(
            *(source, frame, pixel, column, row, i, j, pixels, level, h, w, total),
            *(U + 1, V + 1, LEVELS, ALL),
        )
        a, b, c, d = _load_block(at, down, right, x, y, inside, h >> level, w >> level)
        g = _gradient(of + level * (U * V) * grad_channel, i, j, grad_channel, V, U, valid)
        fx = fx[None, :]
        fy = fy[None, :]
        # A pixel of level i is 2^i pixels wide.
        by_x += tl.sum(g * ((1 - fy) * (b - a) + fy * (d - c)), 0) * (0.5**level)
        by_y += tl.sum(g * ((1 - fx) * (c - a) + fx * (d - b)), 0) * (0.5**level)
    to = out + frame.to(tl.int64) * (2 * pixels) + pixel
    tl.store(to, by_x, mask=valid)
    tl.store(to + pixels, by_y, mask=valid)


def read_windows(
    source: Tensor, coords: Tensor, out: Tensor, *, levels: int, rx: int, ry: int, every: bool
) -> None:
    """Fill out (b, channels, h, w) with the mixed costs; channels past the last level stay as they are.

    source: (b·h·w, total); every: whether it holds all costs or only windows
    """
    lanes = (2 * rx + 2) * (2 * ry + 1)
    _launch(_read, (source, coords, out), coords, out, lanes, levels, rx, ry, every)


def add_windows(
    target: Tensor, coords: Tensor, grad: Tensor, *, levels: int, rx: int, ry: int, every: bool
) -> None:
    """The adjoint: add to the target's cells (every) or write them (windows only)."""
    lanes = (2 * rx + 2) * (2 * ry + 2)
    _launch(_add, (target, coords, grad), coords, grad, lanes, levels, rx, ry, every)


def slopes(
    source: Tensor, coords: Tensor, grad: Tensor, *, levels: int, rx: int, ry: int, every: bool
) -> Tensor:
    """The gradient of coords: (b, 2, h, w) float32."""
    out = torch.empty_like(coords, dtype=torch.float32)
    lanes = (2 * rx + 1) * (2 * ry + 1)
    given = (source, coords, grad, out)
    _launch(_slopes, given, coords, grad, lanes, levels, rx, ry, every, apart=False)
    return out


def _launch(  # type: ignore[no-untyped-def]
    kernel, given, coords, strided, lanes, levels, rx, ry, every, apart=True
) -> None:
    """Start a kernel; `strided` is the tensor (b, channels, h, w) whose layout is free."""
    b, _, h, w = coords.shape
    frame, channel, down, pixel = strided.stride()
    assert down == w * pixel or h == 1, "rows must follow each other"
    grid = (triton.cdiv(h * w, POINTS), levels if apart else 1, b)
    with torch.cuda.device_of(coords):
        kernel[grid](
            *given,
            *(h * w, h, w, given[0].shape[1], frame, channel, pixel),
            RX=rx,
            RY=ry,
            LEVELS=levels,
            ALL=every,
            POINTS=POINTS,
            LANES=triton.next_power_of_2(lanes),
            num_warps=WARPS,
        )


def dense(x: Tensor) -> Tensor:
    """x (b, c, h, w) as it is if its pixels follow each other at one distance, else a copy."""
    _, _, down, pixel = x.stride()
    fine = x.shape[2] == 1 or down == x.shape[3] * pixel
    return x if fine else x.contiguous()

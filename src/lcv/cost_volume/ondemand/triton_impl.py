"""The lookup without the volume: tiles of points against the pixels that their windows cover.

Neighbouring points look at neighbouring windows. A program takes a tile of 8×8 points and one level,
finds the box of frame-2 pixels around all of its windows, and multiplies the tile's features with those
of the box, 64 pixels at a time, on the tensor cores, while the next 64 are loaded. Where the flow tears
a tile apart the box is larger, at most the whole level. What a window wants of a product is kept, 100
numbers a point and level (r = 4), and mixed by the kernels of `allpairs`. Features are all that stays in
memory.

For smooth flow, r = 4 and c channels of s bytes, a tile and level cost 17·17 box pixels: 64·289·c·2
operations and 289·c·s bytes out of the L2 cache. In half precision that is 64 operations a byte, so
L2's bandwidth binds and the tensor cores wait.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lcv.cost_volume.allpairs.triton_impl import empty_windows, pack
from lcv.cost_volume.allpairs.triton_windows import (
    add_windows,
    dense,
    read_windows,
    slopes,
    window_of,
)
from lcv.errors import ShapeError

TILE, CELLS, CHANNELS, WARPS, STAGES = 8, 64, 128, 4, 2
FAR = tl.constexpr(1 << 24)  # a column that no window reaches
MOST = 1 << 22  # pixels of a map; see `_divided`
AT_ONCE = 256  # channels of a product in half precision


@triton.jit
def _tile(coords, frame, tile, level, h, w, RX, RY, LEVELS, TILE: tl.constexpr):
    """A tile's points and windows, and the box of the level's pixels that the windows cover."""
    lane = tl.arange(0, TILE * TILE)
    across = tl.cdiv(w, TILE)
    x = (tile % across) * TILE + lane % TILE
    y = (tile // across) * TILE + lane // TILE
    valid = (x < w) & (y < h)
    pixel = y * w + x
    column, row, _, _ = window_of(coords, frame, pixel, valid, h * w, level, h, w, RX, RY, LEVELS)
    left = tl.maximum(tl.min(tl.where(valid, column, FAR)), 0)
    top = tl.maximum(tl.min(tl.where(valid, row, FAR)), 0)
    right = tl.minimum(tl.max(tl.where(valid, column, -FAR)) + 2 * RX + 2, w >> level)
    bottom = tl.minimum(tl.max(tl.where(valid, row, -FAR)) + 2 * RY + 2, h >> level)
    tall = tl.maximum(bottom - top, 0)
    column = tl.where(valid, column, FAR)
    return pixel, valid, column, row, left, top, tall, tall * tl.maximum(right - left, 0)


@triton.jit
def _divided(number, by):
    """Quotients and remainders of numbers from 0 to 2²²; a GPU divides whole numbers slowly.

    Up to there, rounding moves the float32 quotient by less than 1.
    """
    quotient = (number.to(tl.float32) * (1.0 / by)).to(tl.int32)
    rest = number - quotient * by
    quotient += (rest >= by).to(tl.int32) - (rest < 0).to(tl.int32)
    return quotient, number - quotient * by


@triton.jit
def _piece(first, left, top, tall, count, column, row, RX, RY, CELLS: tl.constexpr):
    """Some pixels of a box: where they are, which are real, how far they lie behind the level's pixel
    (0, 0) in a window's order, and which windows hold them.

    column, row: of the points, as a row (1, points) or a column (points, 1); FAR where there is none
    """
    cell = first + tl.arange(0, CELLS)
    real = cell < count
    across, down = _divided(cell, tall)
    x = left + across
    y = top + down
    AXIS: tl.constexpr = 1 if column.shape[0] == 1 else 0
    i = tl.expand_dims(tl.where(real, x, -FAR), AXIS) - column
    j = tl.expand_dims(y, AXIS) - row
    # As unsigned numbers, what is below 0 is above all else.
    wanted = i.to(tl.uint32, bitcast=True) < 2 * RX + 2
    wanted &= j.to(tl.uint32, bitcast=True) < 2 * RY + 2
    return x, y, real, tl.expand_dims(x * (2 * RY + 2) + y, AXIS), wanted


@triton.jit
def _start(pixel, level, column, row, RX, RY, LEVELS):
    """Where the level's pixel (0, 0) would lie among the costs of each point's window."""
    window = (2 * RX + 2) * (2 * RY + 2)
    return (pixel * LEVELS + level) * window - (column * (2 * RY + 2) + row)


@triton.jit
def _level_start(level, h, w, LEVELS: tl.constexpr):
    start = 0
    for finer in tl.static_range(LEVELS):
        start += tl.where(finer < level, (h >> finer) * (w >> finer), 0)
    return start


@triton.jit
def _products(
    points,
    packed,
    coords,
    out,
    h,
    w,
    total,
    RX: tl.constexpr,
    RY: tl.constexpr,
    LEVELS: tl.constexpr,
    TILE: tl.constexpr,
    CELLS: tl.constexpr,
    CHANNELS: tl.constexpr,
    C: tl.constexpr,
    PRECISION: tl.constexpr,
):
    level = tl.program_id(1)
    frame = tl.program_id(2)
    pixel, valid, column, row, left, top, tall, count = _tile(
        coords, frame, tl.program_id(0), level, h, w, RX, RY, LEVELS, TILE
    )
    points += (frame.to(tl.int64) * (h * w) + pixel)[:, None] * C
    packed += (frame.to(tl.int64) * total + _level_start(level, h, w, LEVELS)) * C
    out += _start(frame.to(tl.int64) * (h * w) + pixel, level, column, row, RX, RY, LEVELS)[None, :]
    # All channels at once where they fit: a tile's own are then loaded once, not for every piece.
    WHOLE: tl.constexpr = CHANNELS >= C
    channel = tl.arange(0, CHANNELS)
    if WHOLE:
        own = valid[:, None] & (channel < C)[None, :]
        f1 = tl.load(points + channel[None, :], mask=own, other=0.0)
    # Pixels come first, so that the lanes of a warp store along them: columns of a window lie together.
    column = column[None, :]
    row = row[None, :]
    for first in tl.range(0, count, CELLS):
        x, y, real, cell, wanted = _piece(first, left, top, tall, count, column, row, RX, RY, CELLS)
        there = packed + ((y * (w >> level) + x) * C)[:, None]
        costs = tl.zeros((CELLS, TILE * TILE), tl.float32)
        for k in tl.static_range(0, C, CHANNELS):
            some = k + channel
            if not WHOLE:
                own = valid[:, None] & (some < C)[None, :]
                f1 = tl.load(points + some[None, :], mask=own, other=0.0)
            theirs = real[:, None] & (some < C)[None, :]
            f2 = tl.load(there + some[None, :], mask=theirs, other=0.0)
            costs = tl.dot(f2, tl.trans(f1), costs, input_precision=PRECISION)
        tl.store(out + cell, costs.to(out.dtype.element_ty), mask=wanted)


@triton.jit
def _push(
    points,
    packed,
    coords,
    grad,
    grad_points,
    grad_packed,
    h,
    w,
    total,
    RX: tl.constexpr,
    RY: tl.constexpr,
    LEVELS: tl.constexpr,
    TILE: tl.constexpr,
    CELLS: tl.constexpr,
    CHANNELS: tl.constexpr,
    C: tl.constexpr,
    PRECISION: tl.constexpr,
):
    level = tl.program_id(1) % LEVELS
    frame = tl.program_id(2)
    channel = tl.program_id(1) // LEVELS * CHANNELS + tl.arange(0, CHANNELS)
    some = (channel < C)[None, :]
    exact = grad_packed.dtype.element_ty
    pixel, valid, column, row, left, top, tall, count = _tile(
        coords, frame, tl.program_id(0), level, h, w, RX, RY, LEVELS, TILE
    )
    point = frame.to(tl.int64) * (h * w) + pixel
    own = (point * C)[:, None] + channel[None, :]
    f1 = tl.load(points + own, mask=valid[:, None] & some, other=0.0)
    start = (frame.to(tl.int64) * total + _level_start(level, h, w, LEVELS)) * C
    of = grad + _start(point, level, column, row, RX, RY, LEVELS)[:, None]
    sums = tl.zeros((TILE * TILE, CHANNELS), exact)
    for first in tl.range(0, count, CELLS):
        x, y, real, cell, wanted = _piece(
            first, left, top, tall, count, column[:, None], row[:, None], RX, RY, CELLS
        )
        g = tl.load(of + cell, mask=wanted, other=0.0)
        there = start + ((y * (w >> level) + x) * C)[:, None] + channel[None, :]
        f2 = tl.load(packed + there, mask=real[:, None] & some, other=0.0)
        sums += tl.dot(g, f2, input_precision=PRECISION).to(exact)
        share = tl.dot(tl.trans(g), f1, input_precision=PRECISION).to(exact)
        tl.atomic_add(grad_packed + there, share, mask=real[:, None] & some, sem="relaxed")
    tl.atomic_add(grad_points + own, sums, mask=valid[:, None] & some, sem="relaxed")


def build(f1: Tensor, f2: Tensor, *, levels: int, scale: float) -> tuple[Tensor, Tensor]:
    """Points of frame 1 (b, h·w, c), scaled, and the packed levels of frame 2 (b, total, c)."""
    points = (scale * f1).flatten(2).transpose(1, 2).contiguous()
    return points, pack(f2, levels=levels)


def lookup(
    features: tuple[Tensor, ...], coords: Tensor, *, levels: int, rx: int, ry: int
) -> Tensor:
    """See `lcv.cost_volume.ondemand.OnDemand.lookup`; features as `build` gives them."""
    points, packed = features
    return lookup_op(points, packed, coords, levels, rx, ry)


def window_costs(
    points: Tensor, packed: Tensor, coords: Tensor, *, levels: int, rx: int, ry: int
) -> Tensor:
    """Whole-pixel costs under every window: (b·h·w, levels·(2rx+2)·(2ry+2)); out of view undefined."""
    n = points.shape[0] * points.shape[1]
    out = points.new_empty(n, levels * (2 * rx + 2) * (2 * ry + 2))
    most = AT_ONCE if points.element_size() == 2 else CHANNELS
    _launch(_products, (points, packed, coords, out), levels, levels, rx, ry, most)
    return out


@torch.library.custom_op("lcv::ondemand_lookup", mutates_args=())
def lookup_op(
    points: Tensor, packed: Tensor, coords: Tensor, levels: int, rx: int, ry: int
) -> Tensor:
    """Windows of the costs of points and packed features, (b, levels·u·v, h, w)."""
    here = coords.contiguous()
    costs = window_costs(points, packed, here, levels=levels, rx=rx, ry=ry)
    out = empty_windows(points, coords, levels, rx, ry)
    read_windows(costs, here, out, levels=levels, rx=rx, ry=ry, every=False)
    return out


@lookup_op.register_fake
def _(points: Tensor, packed: Tensor, coords: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    return empty_windows(points, coords, levels, rx, ry)


@torch.library.custom_op("lcv::ondemand_backward", mutates_args=())
def backward_op(
    grad: Tensor,
    points: Tensor,
    packed: Tensor,
    coords: Tensor,
    levels: int,
    rx: int,
    ry: int,
    of_coords: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of points, packed and coords (empty unless asked for).

    A point has several levels, and several tiles see the same pixel of frame 2, so both gradients are
    added atomically, in numbers wider than the features: float32, for float32 itself float64.
    """
    window: dict[str, Any] = {"levels": levels, "rx": rx, "ry": ry, "every": False}
    here, grad = coords.contiguous(), dense(grad)
    cells = points.new_empty(
        points.shape[0] * points.shape[1], levels * (2 * rx + 2) * (2 * ry + 2)
    )
    add_windows(cells, here, grad, **window)
    wide = torch.float64 if packed.dtype == torch.float32 else torch.float32
    sums = [torch.zeros_like(each, dtype=wide) for each in (points, packed)]
    blocks = triton.cdiv(points.shape[2], _channels(points))
    _launch(_push, (points, packed, here, cells, *sums), levels * blocks, levels, rx, ry)
    grad_coords = coords.new_empty(0)
    if of_coords:
        costs = window_costs(points, packed, here, levels=levels, rx=rx, ry=ry)
        grad_coords = slopes(costs, here, grad, **window).to(coords.dtype)
    return sums[0].to(points.dtype), sums[1].to(packed.dtype), grad_coords


@backward_op.register_fake
def _(
    grad: Tensor,
    points: Tensor,
    packed: Tensor,
    coords: Tensor,
    levels: int,
    rx: int,
    ry: int,
    of_coords: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    of = torch.empty_like(coords, memory_format=torch.contiguous_format)
    return (
        torch.empty_like(points),
        torch.empty_like(packed),
        of if of_coords else coords.new_empty(0),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, levels, rx, ry = inputs
    ctx.save_for_backward(*tensors)
    ctx.settings = (levels, rx, ry)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wants = ctx.needs_input_grad
    points, packed, coords = backward_op(grad, *ctx.saved_tensors, *ctx.settings, wants[2])
    return points, packed, coords if wants[2] else None, None, None, None


lookup_op.register_autograd(_backward, setup_context=_save)


def _channels(points: Tensor, most: int = 0) -> int:
    """Channels taken at a time: half as many where numbers are twice as wide."""
    c, most = points.shape[2], (most or CHANNELS) // (points.element_size() // 2)
    return min(most, max(16, triton.next_power_of_2(c)))


def _launch(kernel, given, second, levels, rx, ry, most=0) -> None:  # type: ignore[no-untyped-def]
    points, packed, coords = given[:3]
    b, _, h, w = coords.shape
    if h * w > MOST:
        raise ShapeError(
            f"on-demand costs by Triton: the maps are {w}×{h}, wanted at most {MOST:,} pixels; use "
            f'backend="torch"'
        )
    # As torch's own products: TF32 only where it is allowed. Three TF32 products are as exact as float32.
    tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
    with torch.cuda.device_of(coords):
        kernel[(triton.cdiv(w, TILE) * triton.cdiv(h, TILE), second, b)](
            *given,
            *(h, w, packed.shape[1]),
            RX=rx,
            RY=ry,
            LEVELS=levels,
            TILE=TILE,
            CELLS=CELLS,
            CHANNELS=_channels(points, most),
            C=points.shape[2],
            PRECISION="tf32" if tf32 else "tf32x3",
            num_warps=WARPS,
            num_stages=STAGES,
        )

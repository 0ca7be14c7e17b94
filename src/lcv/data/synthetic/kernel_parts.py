"""The functions that both GPU kernels of `render_triton.py` are made of.

Each is one of `maps.py`, `shapes.py` or `render.py` for the pixels of a tile. A layer's parameters
are a row of a table; a function takes a pointer to it, one for the tile or one a pixel.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lcv.data.synthetic import maps

# Columns of the table of a layer at a time; the shears follow.
TO_LAYER = tl.constexpr(0)
TO_FRAME = tl.constexpr(9)
DEPTH = tl.constexpr(18)
ROLL = tl.constexpr(21)
RADIUS = tl.constexpr(23)
BOUNDED = tl.constexpr(24)
REACH = tl.constexpr(25)
PLACE = tl.constexpr(26)
GAIN = tl.constexpr(30)
OFFSET = tl.constexpr(33)
SHADOW = tl.constexpr(36)
TRIM = tl.constexpr(41)
BEND = tl.constexpr(45)
RIM = tl.constexpr(maps.RIM)


@triton.jit
def linear(row, x, y):
    """a x + b y + c with the three numbers at a pointer, or at a pointer a pixel."""
    return tl.load(row) * x + (tl.load(row + 1) * y + tl.load(row + 2))


@triton.jit
def project(row, x, y, PERSPECTIVE: tl.constexpr):
    along = linear(row, x, y)
    down = linear(row + 3, x, y)
    if PERSPECTIVE:
        scale = 1.0 / linear(row + 6, x, y)
        along *= scale
        down *= scale
    return along, down


@triton.jit
def profile(form, u, v, NUMBERS: tl.constexpr):
    theta = linear(form, u, v)
    sine = tl.sin(theta)
    total = sine
    if NUMBERS > 3:
        cosine = tl.cos(theta)
        for k in tl.static_range(3, NUMBERS, 2):
            double = 2 * sine * cosine
            cosine = 1 - 2 * sine * sine
            sine = double
            total += tl.load(form + k) * sine + tl.load(form + k + 1) * cosine
    return total


@triton.jit
def outline(field, u, v, GRID: tl.constexpr):
    """d at (u, v): the smaller of two fields, bilinear in their grids."""
    x = tl.minimum(tl.maximum((u + 1) * 0.5 * (GRID - 1), 0.0), GRID - 1.0)
    y = tl.minimum(tl.maximum((v + 1) * 0.5 * (GRID - 1), 0.0), GRID - 1.0)
    i = tl.minimum(y.to(tl.int32), GRID - 2)
    j = tl.minimum(x.to(tl.int32), GRID - 2)
    s = y - i
    t = x - j
    at = field + i * GRID + j
    first = bilinear(at, s, t, GRID)
    second = bilinear(at + GRID * GRID, s, t, GRID)
    return tl.minimum(first, second)


@triton.jit
def bilinear(at, s, t, GRID: tl.constexpr):
    upper = tl.load(at) * (1 - t) + tl.load(at + 1) * t
    lower = tl.load(at + GRID) * (1 - t) + tl.load(at + GRID + 1) * t
    return upper * (1 - s) + lower * s


@triton.jit
def layer_point(
    row,
    x,
    y,
    SHEARS: tl.constexpr,
    ALL_SHEARS: tl.constexpr,
    NUMBERS: tl.constexpr,
    PERSPECTIVE: tl.constexpr,
    CYLINDERS: tl.constexpr,
):
    """(u, v) of a layer at points of the frame, and how far within a cylinder's sides they are."""
    u, v = project(row + TO_LAYER, x, y, PERSPECTIVE)
    inside = tl.full(x.shape, 1.0, tl.float32)
    if CYLINDERS:
        solid = tl.load(row + ROLL)
        turned = tl.load(row + ROLL + 1)
        seen = tl.minimum(tl.maximum(u, -1.0), 1.0)
        half = seen / (1 + tl.sqrt(1 - seen * seen))
        rolled = 0.5 * (half - turned) / (1 + half * turned)
        inside = 1 - (tl.abs(u) + (1 - RIM)) * solid
        u = tl.where(solid > 0, rolled, u)
    for k in tl.static_range(SHEARS):
        shear = row + BEND + 2 * (SHEARS - 1 - k)
        along = tl.load(shear)
        down = tl.load(shear + 1)
        if (along != 0) | (down != 0):
            form = row + BEND + 2 * ALL_SHEARS + NUMBERS * (SHEARS - 1 - k)
            moved = profile(form, u, v, NUMBERS)
            u -= along * moved
            v -= down * moved
    return u, v, inside


@triton.jit
def may_touch(row, x, y, PERSPECTIVE: tl.constexpr):
    """Whether any of these points can lie in the layer, by how far its shears can move one."""
    u, v = project(row + TO_LAYER, x, y, PERSPECTIVE)
    near = tl.maximum(tl.abs(u), tl.abs(v)) < tl.load(row + REACH)
    return (tl.max(near.to(tl.int32)) > 0) | (tl.load(row + BOUNDED) == 0)


@triton.jit
def fold(x, SIZE: tl.constexpr, EDGE: tl.constexpr):
    """Reflection into [EDGE, SIZE − 1 − EDGE]."""
    length: tl.constexpr = SIZE - 1 - 2 * EDGE
    x -= EDGE
    x -= tl.floor(x / (2 * length)) * (2 * length)
    return (SIZE - 1 - EDGE) - tl.abs(x - length)


@triton.jit
def cubic(t, k: tl.constexpr):
    """Weight of tap k = 0 … 3 of cubic convolution (a = −3/4), t past tap 1."""
    if k == 0:
        return ((-0.75 * (t + 1) + 3.75) * (t + 1) - 6.0) * (t + 1) + 3.0
    elif k == 1:
        return (1.25 * t - 2.25) * t * t + 1
    elif k == 2:
        return (1.25 * (1 - t) - 2.25) * (1 - t) * (1 - t) + 1
    else:
        return ((-0.75 * (2 - t) + 3.75) * (2 - t) - 6.0) * (2 - t) + 3.0


@triton.jit
def paint(
    rows,
    skin,
    bank,
    u,
    v,
    d,
    layer,
    COLUMNS: tl.constexpr,
    SIZE: tl.constexpr,
    EDGE: tl.constexpr,
    TRIMS: tl.constexpr,
):
    """The colours of layers at their points (u, v), d inside of them, a layer a pixel."""
    row = rows + layer * COLUMNS
    worn = skin + layer * 4
    x = fold(tl.load(row + PLACE) * u + tl.load(row + PLACE + 1), SIZE, EDGE)
    y = fold(tl.load(row + PLACE + 2) * v + tl.load(row + PLACE + 3), SIZE, EDGE)
    j = tl.minimum(tl.maximum(tl.floor(x).to(tl.int32), 1), SIZE - 3)
    i = tl.minimum(tl.maximum(tl.floor(y).to(tl.int32), 1), SIZE - 3)
    t = x - j
    s = y - i
    tile = bank + tl.load(worn).to(tl.int64) * (3 * SIZE * SIZE) + (i - 1) * SIZE + (j - 1)
    first = tile + tl.load(worn + 1) * (SIZE * SIZE)
    second = tile + tl.load(worn + 2) * (SIZE * SIZE)
    third = tile + tl.load(worn + 3) * (SIZE * SIZE)
    red = tl.zeros(u.shape, tl.float32)
    green = tl.zeros(u.shape, tl.float32)
    blue = tl.zeros(u.shape, tl.float32)
    for a in tl.static_range(4):
        for b in tl.static_range(4):
            weight = cubic(s, a) * cubic(t, b)
            red += weight * tl.load(first + a * SIZE + b).to(tl.float32)
            green += weight * tl.load(second + a * SIZE + b).to(tl.float32)
            blue += weight * tl.load(third + a * SIZE + b).to(tl.float32)
    red = red * tl.load(row + GAIN) + tl.load(row + OFFSET)
    green = green * tl.load(row + GAIN + 1) + tl.load(row + OFFSET + 1)
    blue = blue * tl.load(row + GAIN + 2) + tl.load(row + OFFSET + 2)
    if TRIMS:
        share = tl.minimum(tl.maximum((tl.load(row + TRIM) - d) * 0.5 + 0.5, 0.0), 1.0)
        red += (tl.load(row + TRIM + 1) - red) * share
        green += (tl.load(row + TRIM + 2) - green) * share
        blue += (tl.load(row + TRIM + 3) - blue) * share
    return red, green, blue

"""The same frames, flow and occlusion as `render.py`, one GPU kernel each.

A program makes a tile of pixels and goes through the layers with everything in registers, where the
other renderer writes a dozen maps a layer. It reads textures from the bank and needs no atlas. Its
results equal those of `render.py` to rounding; that file says what they mean.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from lcv.data.synthetic import maps
from lcv.data.synthetic.render import MARGIN, View
from lcv.data.synthetic.scene import Scene

BLOCK_X, BLOCK_Y, WARPS = 32, 8, 4
HIGHEST = 2.3
"""No shear's profile is higher: 1 and four octaves falling as 2^(−0.8 k)."""

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
BEND = tl.constexpr(41)
RIM = tl.constexpr(maps.RIM)


class Renderer:
    """Renders one batch of scenes."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        motion, skins = scene.motion, scene.skins
        times = scene.times
        self.shears, self.numbers = motion.wave.shape[2:]
        # An outline that ends at its grid's border ends a layer; the others have no edge.
        bounded = scene.outlines[:, :, 1, 0, 0] < 0
        bounded = torch.cat((torch.zeros_like(bounded[:, :1]), bounded), 1)
        reach = 1 + HIGHEST * motion.bend.abs().flatten(3).sum(-1)
        still = (motion.radius[..., :1], bounded[..., None].float())
        worn = (skins.place, skins.gain, skins.offset, skins.shadow)
        parts = (
            *(motion.to_layer, motion.to_frame, motion.inverse_depth, motion.roll),
            *(part[:, None].expand(-1, times, -1, -1) for part in still),
            reach[..., None],
            *(part[:, None].expand(-1, times, -1, -1) for part in worn),
            motion.bend.flatten(3),
            motion.wave.flatten(2)[:, None].expand(-1, times, -1, -1),
        )
        self.table = torch.cat([part.float() for part in parts], -1)  # (n, T, L, columns)
        self.skin = torch.cat((skins.tile[..., None], skins.order), -1).int().contiguous()
        self.outlines = scene.outlines.contiguous()
        self.bank = scene.bank.contiguous()

    def render(self, time: int) -> View:
        """As `render.render`."""
        h, w = self.scene.size
        n = len(self.table)
        image = self.table.new_empty(n, 3, h, w)
        layer, u, v = self.table.new_empty(3, n, h, w).unbind(0)
        with torch.cuda.device_of(image):
            _render[self._grid()](
                *(self.table, self.skin, self.outlines, self.bank, image, layer, u, v),
                *(h, w, time, self.scene.times),
                **self._constants(time),
                SIZE=self.bank.shape[-1],
                EDGE=MARGIN,
                SHADOWS=self.scene.skins.shadows,
            )
        return View(image=image, layer=layer, u=u, v=v)

    def follow(self, view: View, time: int) -> tuple[Tensor, Tensor, Tensor]:
        """As `render.flow_to` and `render.hidden_at`: flow, occluded, out of frame."""
        h, w = self.scene.size
        n = len(self.table)
        flow = self.table.new_empty(n, 2, h, w)
        hidden, gone = torch.empty(2, n, 1, h, w, dtype=torch.uint8, device=flow.device).unbind(0)
        with torch.cuda.device_of(flow):
            _follow[self._grid()](
                *(self.table, self.outlines, view.layer, view.u, view.v, flow, hidden, gone),
                *(h, w, time, self.scene.times),
                **self._constants(time),
            )
        return flow, hidden.view(torch.bool), gone.view(torch.bool)

    def _constants(self, time: int) -> dict[str, int | bool]:
        """What both kernels are compiled for."""
        motion = self.scene.motion
        return {
            "L": self.table.shape[2],
            "COLUMNS": self.table.shape[3],
            "SHEARS": self.shears if time > 0 else 0,
            "ALL_SHEARS": self.shears,
            "NUMBERS": self.numbers,
            "GRID": self.outlines.shape[-1],
            "PERSPECTIVE": motion.perspective,
            "CYLINDERS": motion.cylinders,
            "BX": BLOCK_X,
            "BY": BLOCK_Y,
            "num_warps": WARPS,
        }

    def _grid(self) -> tuple[int, int, int]:
        h, w = self.scene.size
        return triton.cdiv(w, BLOCK_X), triton.cdiv(h, BLOCK_Y), len(self.table)


@triton.jit
def _linear(row, x, y):
    """a x + b y + c with the three numbers at a pointer, or at a pointer a pixel."""
    return tl.load(row) * x + (tl.load(row + 1) * y + tl.load(row + 2))


@triton.jit
def _map(row, x, y, PERSPECTIVE: tl.constexpr):
    along = _linear(row, x, y)
    down = _linear(row + 3, x, y)
    if PERSPECTIVE:
        scale = 1.0 / _linear(row + 6, x, y)
        along *= scale
        down *= scale
    return along, down


@triton.jit
def _profile(form, u, v, NUMBERS: tl.constexpr):
    theta = _linear(form, u, v)
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
def _outline(field, u, v, GRID: tl.constexpr):
    """d at (u, v): the smaller of two fields, bilinear in their grids."""
    x = tl.minimum(tl.maximum((u + 1) * 0.5 * (GRID - 1), 0.0), GRID - 1.0)
    y = tl.minimum(tl.maximum((v + 1) * 0.5 * (GRID - 1), 0.0), GRID - 1.0)
    i = tl.minimum(y.to(tl.int32), GRID - 2)
    j = tl.minimum(x.to(tl.int32), GRID - 2)
    s = y - i
    t = x - j
    at = field + i * GRID + j
    first = _bilinear(at, s, t, GRID)
    second = _bilinear(at + GRID * GRID, s, t, GRID)
    return tl.minimum(first, second)


@triton.jit
def _bilinear(at, s, t, GRID: tl.constexpr):
    upper = tl.load(at) * (1 - t) + tl.load(at + 1) * t
    lower = tl.load(at + GRID) * (1 - t) + tl.load(at + GRID + 1) * t
    return upper * (1 - s) + lower * s


@triton.jit
def _own(
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
    u, v = _map(row + TO_LAYER, x, y, PERSPECTIVE)
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
            moved = _profile(form, u, v, NUMBERS)
            u -= along * moved
            v -= down * moved
    return u, v, inside


@triton.jit
def _may_touch(row, x, y, PERSPECTIVE: tl.constexpr):
    """Whether any of these points can lie in the layer, by how far its shears can move one."""
    u, v = _map(row + TO_LAYER, x, y, PERSPECTIVE)
    near = tl.maximum(tl.abs(u), tl.abs(v)) < tl.load(row + REACH)
    return (tl.max(near.to(tl.int32)) > 0) | (tl.load(row + BOUNDED) == 0)


@triton.jit
def _fold(x, SIZE: tl.constexpr, EDGE: tl.constexpr):
    """Reflection into [EDGE, SIZE − 1 − EDGE]."""
    length: tl.constexpr = SIZE - 1 - 2 * EDGE
    x -= EDGE
    x -= tl.floor(x / (2 * length)) * (2 * length)
    return (SIZE - 1 - EDGE) - tl.abs(x - length)


@triton.jit
def _cubic(t, k: tl.constexpr):
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
def _paint(
    rows, skin, bank, u, v, layer, COLUMNS: tl.constexpr, SIZE: tl.constexpr, EDGE: tl.constexpr
):
    """The colours of layers at their points (u, v), a layer a pixel."""
    row = rows + layer * COLUMNS
    worn = skin + layer * 4
    x = _fold(tl.load(row + PLACE) * u + tl.load(row + PLACE + 1), SIZE, EDGE)
    y = _fold(tl.load(row + PLACE + 2) * v + tl.load(row + PLACE + 3), SIZE, EDGE)
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
            weight = _cubic(s, a) * _cubic(t, b)
            red += weight * tl.load(first + a * SIZE + b).to(tl.float32)
            green += weight * tl.load(second + a * SIZE + b).to(tl.float32)
            blue += weight * tl.load(third + a * SIZE + b).to(tl.float32)
    red = red * tl.load(row + GAIN) + tl.load(row + OFFSET)
    green = green * tl.load(row + GAIN + 1) + tl.load(row + OFFSET + 1)
    blue = blue * tl.load(row + GAIN + 2) + tl.load(row + OFFSET + 2)
    return red, green, blue


@triton.jit(do_not_specialize=["time", "times"])
def _render(
    table,
    skin,
    outlines,
    bank,
    image,
    layers,
    us,
    vs,
    h,
    w,
    time,
    times,
    L: tl.constexpr,
    COLUMNS: tl.constexpr,
    SHEARS: tl.constexpr,
    ALL_SHEARS: tl.constexpr,
    NUMBERS: tl.constexpr,
    GRID: tl.constexpr,
    SIZE: tl.constexpr,
    EDGE: tl.constexpr,
    PERSPECTIVE: tl.constexpr,
    CYLINDERS: tl.constexpr,
    SHADOWS: tl.constexpr,
    BX: tl.constexpr,
    BY: tl.constexpr,
):
    pixel = tl.arange(0, BX * BY)
    column = tl.program_id(0) * BX + pixel % BX
    line = tl.program_id(1) * BY + pixel // BX
    scene = tl.program_id(2).to(tl.int64)
    x = column.to(tl.float32)
    y = line.to(tl.float32)
    rows = table + (scene * times + time) * (L * COLUMNS)
    fields = outlines + scene * ((L - 1) * 2 * GRID * GRID)

    # The nearest layer that touches a pixel, the next behind it, and the nearest that covers it.
    front_q = _linear(rows + DEPTH, x, y)
    front_u, front_v, inside = _own(rows, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS)
    front_d = tl.full(x.shape, 1.0, tl.float32)
    front = tl.zeros(x.shape, tl.int32)
    back_q, back_u, back_v, back = front_q, front_u, front_v, front
    shown_q, shown_u, shown_v, shown = front_q, front_u, front_v, front
    for layer in range(1, L):
        row = rows + layer * COLUMNS
        q = _linear(row + DEPTH, x, y)
        # What is behind all that the tile shows so far is not seen.
        nearer = tl.max((q > tl.minimum(back_q, shown_q)).to(tl.int32)) > 0
        if nearer & _may_touch(row, x, y, PERSPECTIVE):
            u, v, inside = _own(row, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS)
            d = _outline(fields + (layer - 1) * (2 * GRID * GRID), u, v, GRID)
            if CYLINDERS:
                d = tl.minimum(d, inside * tl.load(row + RADIUS))
            touches = d > -0.5
            first = touches & (q > front_q)
            second = touches & (q > back_q) & (q <= front_q)
            back_q = tl.where(first, front_q, tl.where(second, q, back_q))
            back_u = tl.where(first, front_u, tl.where(second, u, back_u))
            back_v = tl.where(first, front_v, tl.where(second, v, back_v))
            back = tl.where(first, front, tl.where(second, layer, back))
            front_q = tl.where(first, q, front_q)
            front_u = tl.where(first, u, front_u)
            front_v = tl.where(first, v, front_v)
            front_d = tl.where(first, d, front_d)
            front = tl.where(first, layer, front)
            covers = (d > 0) & (q > shown_q)
            shown_q = tl.where(covers, q, shown_q)
            shown_u = tl.where(covers, u, shown_u)
            shown_v = tl.where(covers, v, shown_v)
            shown = tl.where(covers, layer, shown)

    if PERSPECTIVE:
        one = rows + front * COLUMNS + DEPTH
        other = rows + back * COLUMNS + DEPTH
        across = tl.load(one) - tl.load(other)
        down = tl.load(one + 1) - tl.load(other + 1)
        steepness = tl.maximum(tl.sqrt(across * across + down * down), 1e-12)
        front_d = tl.minimum(front_d, (front_q - back_q) / steepness)
    coverage = tl.minimum(tl.maximum(front_d + 0.5, 0.0), 1.0)
    worn = skin + scene * (L * 4)
    red, green, blue = _paint(rows, worn, bank, front_u, front_v, front, COLUMNS, SIZE, EDGE)
    light = tl.full(x.shape, 1.0, tl.float32)
    light_back = light
    if SHADOWS:
        for layer in range(1, L):
            row = rows + layer * COLUMNS
            dark = tl.load(row + SHADOW)
            if dark > 0:
                q = _linear(row + DEPTH, x, y)
                u, v, inside = _own(row, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS)
                a = (u - tl.load(row + SHADOW + 1)) * tl.load(row + SHADOW + 3)
                b = (v - tl.load(row + SHADOW + 2)) * tl.load(row + SHADOW + 4)
                soft = tl.maximum(1 - a * a - b * b, 0.0)
                soft = soft * soft * dark
                light *= 1 - tl.where(q > front_q, soft, 0.0)
                light_back *= 1 - tl.where(q > back_q, soft, 0.0)
    red *= light
    green *= light
    blue *= light
    if tl.min(coverage) < 1:
        red_back, green_back, blue_back = _paint(
            rows, worn, bank, back_u, back_v, back, COLUMNS, SIZE, EDGE
        )
        red_back *= light_back
        green_back *= light_back
        blue_back *= light_back
        red = red_back + (red - red_back) * coverage
        green = green_back + (green - green_back) * coverage
        blue = blue_back + (blue - blue_back) * coverage

    inner = (column < w) & (line < h)
    at = line * w + column
    plane = scene * 3 * h * w + at
    tl.store(image + plane, tl.minimum(tl.maximum(red, 0.0), 255.0), mask=inner)
    tl.store(image + plane + h * w, tl.minimum(tl.maximum(green, 0.0), 255.0), mask=inner)
    tl.store(image + plane + 2 * h * w, tl.minimum(tl.maximum(blue, 0.0), 255.0), mask=inner)
    at = scene * h * w + at
    tl.store(layers + at, shown.to(tl.float32), mask=inner)
    tl.store(us + at, shown_u, mask=inner)
    tl.store(vs + at, shown_v, mask=inner)


@triton.jit(do_not_specialize=["time", "times"])
def _follow(
    table,
    outlines,
    layers,
    us,
    vs,
    flow,
    hidden_at,
    gone_at,
    h,
    w,
    time,
    times,
    L: tl.constexpr,
    COLUMNS: tl.constexpr,
    SHEARS: tl.constexpr,
    ALL_SHEARS: tl.constexpr,
    NUMBERS: tl.constexpr,
    GRID: tl.constexpr,
    PERSPECTIVE: tl.constexpr,
    CYLINDERS: tl.constexpr,
    BX: tl.constexpr,
    BY: tl.constexpr,
):
    pixel = tl.arange(0, BX * BY)
    column = tl.program_id(0) * BX + pixel % BX
    line = tl.program_id(1) * BY + pixel // BX
    scene = tl.program_id(2).to(tl.int64)
    inner = (column < w) & (line < h)
    at = scene * h * w + line * w + column
    rows = table + (scene * times + time) * (L * COLUMNS)
    fields = outlines + scene * ((L - 1) * 2 * GRID * GRID)
    shown = tl.load(layers + at, mask=inner, other=0.0).to(tl.int32)
    u = tl.load(us + at, mask=inner, other=0.0)
    v = tl.load(vs + at, mask=inner, other=0.0)

    row = rows + shown * COLUMNS
    for k in tl.static_range(SHEARS):
        along = tl.load(row + BEND + 2 * k)
        down = tl.load(row + BEND + 2 * k + 1)
        if tl.max(tl.abs(along) + tl.abs(down)) > 0:
            moved = _profile(row + BEND + 2 * ALL_SHEARS + NUMBERS * k, u, v, NUMBERS)
            u += along * moved
            v += down * moved
    hidden = tl.zeros(u.shape, tl.int32)
    if CYLINDERS:
        solid = tl.load(row + ROLL)
        turned = tl.load(row + ROLL + 1)
        a = 2 * u + turned
        b = 1 - 2 * u * turned
        rolled = 2 * a * b / (a * a + b * b)
        unseen = (tl.abs(a) > b) | (tl.abs(rolled) > RIM)
        hidden = (unseen & (solid > 0)).to(tl.int32)
        u = tl.where(solid > 0, rolled, u)
    x, y = _map(row + TO_FRAME, u, v, PERSPECTIVE)
    start = scene * 2 * h * w + line * w + column
    tl.store(flow + start, x - column.to(tl.float32), mask=inner)
    tl.store(flow + start + h * w, y - line.to(tl.float32), mask=inner)

    # As the flow says it, so that both agree at the border to the last bit.
    x = (x - column.to(tl.float32)) + column.to(tl.float32)
    y = (y - line.to(tl.float32)) + line.to(tl.float32)
    right = (w - 1).to(tl.float32)
    bottom = (h - 1).to(tl.float32)
    gone = (x < 0) | (x > right) | (y < 0) | (y > bottom)
    x = tl.minimum(tl.maximum(x, 0.0), right)
    y = tl.minimum(tl.maximum(y, 0.0), bottom)
    own = _linear(row + DEPTH, x, y)
    for layer in range(L):
        line_of = rows + layer * COLUMNS
        nearer = (_linear(line_of + DEPTH, x, y) > own) & (shown != layer) & (hidden == 0)
        if tl.max(nearer.to(tl.int32)) > 0:
            if layer == 0:
                hidden = hidden | nearer.to(tl.int32)
            elif _may_touch(line_of, x, y, PERSPECTIVE):
                u, v, inside = _own(
                    line_of, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS
                )
                d = _outline(fields + (layer - 1) * (2 * GRID * GRID), u, v, GRID)
                if CYLINDERS:
                    d = tl.minimum(d, inside * tl.load(line_of + RADIUS))
                hidden = hidden | (nearer & (d > 0)).to(tl.int32)
    tl.store(hidden_at + at, ((hidden > 0) | gone).to(tl.uint8), mask=inner)
    tl.store(gone_at + at, gone.to(tl.uint8), mask=inner)

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

from lcv.data.synthetic.kernel_parts import (
    BEND,
    DEPTH,
    RADIUS,
    RIM,
    ROLL,
    SHADOW,
    TO_FRAME,
    layer_point,
    linear,
    may_touch,
    outline,
    paint,
    profile,
    project,
)
from lcv.data.synthetic.render import MARGIN, View
from lcv.data.synthetic.scene import Scene

BLOCK_X, BLOCK_Y, WARPS = 32, 8, 4
HIGHEST = 2.3
"""No shear's profile is higher: 1 and four octaves falling as 2^(−0.8 k)."""


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
        worn = (skins.place, skins.gain, skins.offset, skins.shadow, skins.trim)
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
                TRIMS=self.scene.skins.trims,
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
    TRIMS: tl.constexpr,
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
    front_q = linear(rows + DEPTH, x, y)
    front_u, front_v, inside = layer_point(
        rows, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS
    )
    front_d = tl.full(x.shape, 1.0, tl.float32)
    front = tl.zeros(x.shape, tl.int32)
    back_q, back_u, back_v, back_d, back = front_q, front_u, front_v, front_d, front
    shown_q, shown_u, shown_v, shown = front_q, front_u, front_v, front
    for layer in range(1, L):
        row = rows + layer * COLUMNS
        q = linear(row + DEPTH, x, y)
        # What is behind all that the tile shows so far is not seen.
        nearer = tl.max((q > tl.minimum(back_q, shown_q)).to(tl.int32)) > 0
        if nearer & may_touch(row, x, y, PERSPECTIVE):
            u, v, inside = layer_point(
                row, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS
            )
            d = outline(fields + (layer - 1) * (2 * GRID * GRID), u, v, GRID)
            if CYLINDERS:
                d = tl.minimum(d, inside * tl.load(row + RADIUS))
            touches = d > -0.5
            first = touches & (q > front_q)
            second = touches & (q > back_q) & (q <= front_q)
            back_q = tl.where(first, front_q, tl.where(second, q, back_q))
            back_u = tl.where(first, front_u, tl.where(second, u, back_u))
            back_v = tl.where(first, front_v, tl.where(second, v, back_v))
            back_d = tl.where(first, front_d, tl.where(second, d, back_d))
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

    depth = front_d
    if PERSPECTIVE:
        one = rows + front * COLUMNS + DEPTH
        other = rows + back * COLUMNS + DEPTH
        across = tl.load(one) - tl.load(other)
        down = tl.load(one + 1) - tl.load(other + 1)
        steepness = tl.maximum(tl.sqrt(across * across + down * down), 1e-12)
        depth = tl.minimum(depth, (front_q - back_q) / steepness)
    coverage = tl.minimum(tl.maximum(depth + 0.5, 0.0), 1.0)
    worn = skin + scene * (L * 4)
    red, green, blue = paint(
        rows, worn, bank, front_u, front_v, front_d, front, COLUMNS, SIZE, EDGE, TRIMS
    )
    light = tl.full(x.shape, 1.0, tl.float32)
    light_back = light
    if SHADOWS:
        for layer in range(1, L):
            row = rows + layer * COLUMNS
            dark = tl.load(row + SHADOW)
            if dark > 0:
                q = linear(row + DEPTH, x, y)
                u, v, inside = layer_point(
                    row, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS
                )
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
        red_back, green_back, blue_back = paint(
            rows, worn, bank, back_u, back_v, back_d, back, COLUMNS, SIZE, EDGE, TRIMS
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
            moved = profile(row + BEND + 2 * ALL_SHEARS + NUMBERS * k, u, v, NUMBERS)
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
    x, y = project(row + TO_FRAME, u, v, PERSPECTIVE)
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
    own = linear(row + DEPTH, x, y)
    for layer in range(L):
        line_of = rows + layer * COLUMNS
        nearer = (linear(line_of + DEPTH, x, y) > own) & (shown != layer) & (hidden == 0)
        if tl.max(nearer.to(tl.int32)) > 0:
            if layer == 0:
                hidden = hidden | nearer.to(tl.int32)
            elif may_touch(line_of, x, y, PERSPECTIVE):
                u, v, inside = layer_point(
                    line_of, x, y, SHEARS, ALL_SHEARS, NUMBERS, PERSPECTIVE, CYLINDERS
                )
                d = outline(fields + (layer - 1) * (2 * GRID * GRID), u, v, GRID)
                if CYLINDERS:
                    d = tl.minimum(d, inside * tl.load(line_of + RADIUS))
                hidden = hidden | (nearer & (d > 0)).to(tl.int32)
    tl.store(hidden_at + at, ((hidden > 0) | gone).to(tl.uint8), mask=inner)
    tl.store(gone_at + at, gone.to(tl.uint8), mask=inner)

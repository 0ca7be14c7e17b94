"""The slow truth: one pixel at a time, plain Python floats (float64), from a scene's parameters.

Written from the definitions in `maps.py` and `shapes.py`, not from the code that renders. Where
that uses a closed inverse, this solves the forward map by iteration; where that calls grid_sample,
this interpolates by hand; where that mixes two layers, this paints all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lcv.data.synthetic.maps import RIM
from lcv.data.synthetic.scene import Scene

Point = tuple[float, float]


class Truth:
    """One scene of a batch, asked about single points."""

    def __init__(self, scene: Scene, sample: int) -> None:
        self.height, self.width = scene.size
        self.layers = scene.layers
        motion = scene.motion
        self.to_frame = motion.to_frame[sample].double().tolist()  # [time][layer][9]
        self.bend = motion.bend[sample].double().tolist()  # [time][layer][shear][2]
        self.wave = motion.wave[sample].double().tolist()  # [layer][shear][f, φ, aₖ, bₖ]
        self.roll = motion.roll[sample].double().tolist()  # [time][layer][is it a cylinder, τ]
        self.inverse_depth = motion.inverse_depth[sample].double().tolist()  # [time][layer][3]
        self.radius = motion.radius[sample].double().tolist()  # [layer][2]
        self.outlines = scene.outlines[sample].double().tolist()  # [object][2][row][column]
        self.place = scene.skins.place[sample].double().tolist()  # [layer][4]
        self.trim = scene.skins.trim[sample].double().tolist()  # [layer][width, red, green, blue]
        self.atlas = scene.atlas[sample]
        self.tile = scene.atlas.shape[-1]

    def bent(self, time: int, layer: int, point: Point) -> Point:
        """A point of the layer after the shears of a time."""
        u, v = point
        for (along, down), form in zip(self.bend[time][layer], self.wave[layer], strict=True):
            theta = form[0] * u + form[1] * v + form[2]
            moved = math.sin(theta)
            for k in range(1, (len(form) - 1) // 2):
                a, b = form[1 + 2 * k : 3 + 2 * k]
                moved += a * math.sin(2**k * theta) + b * math.cos(2**k * theta)
            u, v = u + along * moved, v + down * moved
        return u, v

    def placed(self, time: int, layer: int, point: Point) -> Point:
        """Where a point appears after shears and rolling."""
        u, v = point
        a, b, c, d, e, f, g, h, i = self.to_frame[time][layer]
        return (a * u + b * v + c) / (g * u + h * v + i), (d * u + e * v + f) / (g * u + h * v + i)

    def angle(self, time: int, layer: int, u: float) -> float:
        """Where on a cylinder u is, seen from the camera: 0 where it faces it."""
        return 2 * math.atan(2 * u) + 2 * math.atan(self.roll[time][layer][1])

    def frame_point(self, time: int, layer: int, point: Point) -> Point:
        """Where a point of the layer appears in the frame."""
        u, v = self.bent(time, layer, point)
        if self.roll[time][layer][0]:
            u = math.sin(self.angle(time, layer, u))
        return self.placed(time, layer, (u, v))

    def layer_point(self, time: int, layer: int, point: Point) -> Point:
        """Which point of the layer appears here: every step of the forward map, solved."""
        u, v = _solved(lambda p: self.placed(time, layer, p), point)
        if self.roll[time][layer][0]:
            turned = 2 * math.atan(self.roll[time][layer][1])
            u = math.tan((math.asin(min(max(u, -1.0), 1.0)) - turned) / 2) / 2
        return _solved(lambda p: self.bent(time, layer, p), (u, v))

    def nearness(self, time: int, layer: int, point: Point) -> float:
        """The inverse depth of a layer at a point of the frame."""
        a, b, c = self.inverse_depth[time][layer]
        return a * point[0] + b * point[1] + c

    def depth(self, time: int, layer: int, point: Point) -> float:
        """d of a layer at a point of the frame: the smaller of two fields, bilinear in a grid, and of
        the distance to a cylinder's rim; without end for the background."""
        if layer == 0:
            return math.inf
        own = self.layer_point(time, layer, point)
        values = []
        for field in self.outlines[layer - 1]:
            last = len(field) - 1
            column = min(max((own[0] + 1) / 2 * last, 0.0), float(last))
            row = min(max((own[1] + 1) / 2 * last, 0.0), float(last))
            i, j = min(int(row), last - 1), min(int(column), last - 1)
            s, t = row - i, column - j
            upper = field[i][j] * (1 - t) + field[i][j + 1] * t
            lower = field[i + 1][j] * (1 - t) + field[i + 1][j + 1] * t
            values.append(upper * (1 - s) + lower * s)
        if self.roll[time][layer][0]:
            side = _solved(lambda p: self.placed(time, layer, p), point)[0]
            values.append((RIM - abs(side)) * self.radius[layer][0])
        return min(values)

    def covering(self, time: int, point: Point, least: float = 0.0) -> list[int]:
        """The layers with d > least at a point, farthest first."""
        found = [k for k in range(self.layers) if self.depth(time, k, point) > least]
        return sorted(found, key=lambda layer: self.nearness(time, layer, point))

    def shown(self, time: int, point: Point) -> tuple[int, Point]:
        """The nearest layer that covers a point of the frame, and its own point there."""
        layer = self.covering(time, point)[-1]
        return layer, self.layer_point(time, layer, point)

    def flow(self, time: int, other: int, point: Point) -> Point:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        return x - point[0], y - point[1]

    def occluded(self, time: int, other: int, point: Point) -> bool:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        if not (0 <= x <= self.width - 1 and 0 <= y <= self.height - 1):
            return True
        if self.roll[other][layer][0]:
            u, _ = self.bent(other, layer, own)
            if abs(self.angle(other, layer, u)) > math.asin(RIM):
                return True
        nearest = self.nearness(other, layer, (x, y))
        others = [one for one in self.covering(other, (x, y)) if one != layer]
        return any(self.nearness(other, one, (x, y)) > nearest for one in others)

    def paints(self, time: int, point: Point) -> list[tuple[int, float]]:
        """The layers that touch a pixel, farthest first, each with the share of it that it covers.

        d + ½ clipped to [0, 1], where d is also the distance in pixels to the line where the layer
        cuts through the next one behind it.
        """
        found: list[tuple[int, float]] = []
        for layer in self.covering(time, point, least=-0.5):
            d = self.depth(time, layer, point)
            mine = self.inverse_depth[time][layer]
            for behind, _ in found[-1:]:
                other = self.inverse_depth[time][behind]
                slope = math.hypot(mine[0] - other[0], mine[1] - other[1])
                apart = self.nearness(time, layer, point) - self.nearness(time, behind, point)
                d = min(d, apart / slope if slope > 0 else math.inf)
            found.append((layer, min(max(d + 0.5, 0.0), 1.0)))
        return found

    def colour(self, time: int, point: Point) -> list[float]:
        """RGB of a pixel: every layer painted over those behind it by its coverage."""
        colour = [0.0, 0.0, 0.0]
        for layer, coverage in self.paints(time, point):
            paint = self.trimmed(time, layer, point)
            colour = [c + coverage * (p - c) for c, p in zip(colour, paint, strict=True)]
        return [min(max(c, 0.0), 255.0) for c in colour]

    def trimmed(self, time: int, layer: int, point: Point) -> list[float]:
        """RGB of a layer at a point of the frame: its texture, and its edge in another colour."""
        wide, *edge = self.trim[layer]
        share = min(max((wide - self.depth(time, layer, point)) / 2 + 0.5, 0.0), 1.0)
        inner = self.texture(layer, self.layer_point(time, layer, point))
        return [a + share * (b - a) for a, b in zip(inner, edge, strict=True)]

    def texture(self, layer: int, own: Point) -> list[float]:
        """Cubic convolution (a = −3/4) in the layer's tile, which is reflected at its ends."""
        sx, ox, sy, oy = self.place[layer]
        x, y = self._reflected(sx * own[0] + ox), self._reflected(sy * own[1] + oy)
        column, row = math.floor(x), math.floor(y)
        total = [0.0, 0.0, 0.0]
        for i in range(-1, 3):
            for j in range(-1, 3):
                weight = _cubic(y - row - i) * _cubic(x - column - j)
                texel = self.atlas[:, layer * self.tile + row + i, column + j].tolist()
                total = [t + weight * value for t, value in zip(total, texel, strict=True)]
        return total

    def _reflected(self, x: float) -> float:
        low, high = 3.0, self.tile - 4.0
        while not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
        return x


def _solved(function: Callable[[Point], Point], target: Point) -> Point:
    """The point that a function takes to the target: Newton's method, slopes by differences."""
    u = v = 0.0
    step = 1e-6
    for _ in range(400):
        x, y = function((u, v))
        miss_x, miss_y = target[0] - x, target[1] - y
        if abs(miss_x) + abs(miss_y) < 1e-9:
            return u, v
        right, below = function((u + step, v)), function((u, v + step))
        a, b = (right[0] - x) / step, (below[0] - x) / step
        d, e = (right[1] - y) / step, (below[1] - y) / step
        u += (e * miss_x - b * miss_y) / (a * e - b * d)
        v += (a * miss_y - d * miss_x) / (a * e - b * d)
    raise AssertionError(f"no point found that goes to {target}")


def _cubic(t: float) -> float:
    t, a = abs(t), -0.75
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    if t < 2:
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return 0.0

"""The slow truth: one pixel at a time, plain Python floats (float64), from a scene's parameters.

Written from the definitions in `maps.py` and `shapes.py`, not from the code that renders. Where
that uses a closed inverse, this solves the forward map by iteration; where that calls grid_sample,
this interpolates by hand; where that mixes two layers, this paints all of them.
"""

from __future__ import annotations

import math

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
        self.inverse_depth = motion.inverse_depth[sample].double().tolist()  # [time][layer][3]
        self.radius = motion.radius[sample].double().tolist()  # [layer][2]
        self.outlines = scene.outlines[sample].double().tolist()  # [object][2][row][column]
        self.place = scene.skins.place[sample].double().tolist()  # [layer][4]
        self.atlas = scene.atlas[sample]
        self.tile = scene.atlas.shape[-1]

    def frame_point(self, time: int, layer: int, point: Point) -> Point:
        """Where a point of the layer appears in the frame."""
        u, v = point
        for (along, down), form in zip(self.bend[time][layer], self.wave[layer], strict=True):
            theta = form[0] * u + form[1] * v + form[2]
            moved = math.sin(theta)
            for k in range(1, (len(form) - 1) // 2):
                a, b = form[1 + 2 * k : 3 + 2 * k]
                moved += a * math.sin(2**k * theta) + b * math.cos(2**k * theta)
            u, v = u + along * moved, v + down * moved
        a, b, c, d, e, f, g, h, i = self.to_frame[time][layer]
        return (a * u + b * v + c) / (g * u + h * v + i), (d * u + e * v + f) / (g * u + h * v + i)

    def layer_point(self, time: int, layer: int, point: Point) -> Point:
        """Which point of the layer appears here: Newton's method on the forward map."""
        u = v = 0.0
        step = 1e-6
        for _ in range(400):
            x, y = self.frame_point(time, layer, (u, v))
            miss_x, miss_y = point[0] - x, point[1] - y
            if abs(miss_x) + abs(miss_y) < 1e-9:
                return u, v
            right = self.frame_point(time, layer, (u + step, v))
            below = self.frame_point(time, layer, (u, v + step))
            a, b = (right[0] - x) / step, (below[0] - x) / step
            d, e = (right[1] - y) / step, (below[1] - y) / step
            u += (e * miss_x - b * miss_y) / (a * e - b * d)
            v += (a * miss_y - d * miss_x) / (a * e - b * d)
        raise AssertionError(f"no layer point found for {point} in layer {layer}")

    def nearness(self, time: int, layer: int, point: Point) -> float:
        """The inverse depth of a layer at a point of the frame."""
        a, b, c = self.inverse_depth[time][layer]
        return a * point[0] + b * point[1] + c

    def depth(self, layer: int, point: Point) -> float:
        """d at a point of a layer: the smaller of two fields, bilinear in the outline's grid."""
        values = []
        for field in self.outlines[layer - 1]:
            last = len(field) - 1
            column = min(max((point[0] + 1) / 2 * last, 0.0), float(last))
            row = min(max((point[1] + 1) / 2 * last, 0.0), float(last))
            i, j = min(int(row), last - 1), min(int(column), last - 1)
            s, t = row - i, column - j
            upper = field[i][j] * (1 - t) + field[i][j + 1] * t
            lower = field[i + 1][j] * (1 - t) + field[i + 1][j + 1] * t
            values.append(upper * (1 - s) + lower * s)
        return min(values)

    def covering(self, time: int, point: Point, least: float = 0.0) -> list[tuple[int, Point]]:
        """The layers with d > least at a point, farthest first, each with its own point there."""
        found = [(0, self.layer_point(time, 0, point))]
        for layer in range(1, self.layers):
            own = self.layer_point(time, layer, point)
            if self.depth(layer, own) > least:
                found.append((layer, own))
        return sorted(found, key=lambda one: self.nearness(time, one[0], point))

    def shown(self, time: int, point: Point) -> tuple[int, Point]:
        """The nearest layer that covers a point of the frame, and its own point there."""
        return self.covering(time, point)[-1]

    def flow(self, time: int, other: int, point: Point) -> Point:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        return x - point[0], y - point[1]

    def occluded(self, time: int, other: int, point: Point) -> bool:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        if not (0 <= x <= self.width - 1 and 0 <= y <= self.height - 1):
            return True
        nearest = self.nearness(other, layer, (x, y))
        return any(
            self.nearness(other, one, (x, y)) > nearest
            for one, _ in self.covering(other, (x, y))
            if one != layer
        )

    def colour(self, time: int, point: Point) -> list[float]:
        """RGB of a pixel: every layer painted over those behind it by its coverage."""
        colour = [0.0, 0.0, 0.0]
        for layer, own in self.covering(time, point, least=-0.5):
            coverage = min(max(self.depth(layer, own) + 0.5, 0.0), 1.0) if layer else 1.0
            paint = self.texture(layer, own)
            colour = [c + coverage * (p - c) for c, p in zip(colour, paint, strict=True)]
        return [min(max(c, 0.0), 255.0) for c in colour]

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


def _cubic(t: float) -> float:
    t, a = abs(t), -0.75
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    if t < 2:
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return 0.0

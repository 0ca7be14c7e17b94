"""The slow truth: one pixel at a time, plain Python floats (float64), from a scene's parameters.

Written from the definitions in `motion.py` and `shapes.py`, not from the code that renders. Where
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
        self.to_frame = scene.motion.to_frame[sample].double().tolist()  # [time][layer][6]
        self.bend = scene.motion.bend[sample].double().tolist()  # [time][layer][2]
        self.wave = scene.motion.wave[sample].double().tolist()  # [layer][4]
        self.radius = scene.motion.radius[sample].double().tolist()  # [layer][2]
        self.outlines = scene.outlines[sample].double().tolist()  # [object][2][row][column]
        self.place = scene.skins.place[sample].double().tolist()  # [layer][4]
        self.atlas = scene.atlas[sample]
        self.tile = scene.atlas.shape[-1]

    def frame_point(self, time: int, layer: int, point: Point) -> Point:
        """Where a point of the layer appears in the frame."""
        u, v = point
        p, q = self.bend[time][layer]
        k1, phase1, k2, phase2 = self.wave[layer]
        u = u + p * math.sin(k1 * v + phase1)
        v = v + q * math.sin(k2 * u + phase2)
        a, b, c, d, e, f = self.to_frame[time][layer]
        return a * u + b * v + c, d * u + e * v + f

    def layer_point(self, time: int, layer: int, point: Point) -> Point:
        """Which point of the layer appears here: the forward map, solved by correcting a guess."""
        a, b, _, d, e, _ = self.to_frame[time][layer]
        determinant = a * e - b * d
        u = v = 0.0
        for _ in range(400):
            x, y = self.frame_point(time, layer, (u, v))
            miss_x, miss_y = point[0] - x, point[1] - y
            u += (e * miss_x - b * miss_y) / determinant
            v += (a * miss_y - d * miss_x) / determinant
            if abs(miss_x) + abs(miss_y) < 1e-11:
                return u, v
        raise AssertionError(f"no layer point found for {point} in layer {layer}")

    def depth(self, layer: int, point: Point) -> float:
        """d at a point of an object: the smaller of two fields, bilinear in the outline's grid."""
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

    def shown(self, time: int, point: Point) -> tuple[int, Point]:
        """The front layer that covers a point of the frame, and its own point there."""
        for layer in range(self.layers - 1, 0, -1):
            own = self.layer_point(time, layer, point)
            if self.depth(layer, own) > 0:
                return layer, own
        return 0, self.layer_point(time, 0, point)

    def flow(self, time: int, other: int, point: Point) -> Point:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        return x - point[0], y - point[1]

    def occluded(self, time: int, other: int, point: Point) -> bool:
        layer, own = self.shown(time, point)
        x, y = self.frame_point(other, layer, own)
        if not (0 <= x <= self.width - 1 and 0 <= y <= self.height - 1):
            return True
        return self.shown(other, (x, y))[0] > layer

    def touching(self, time: int, point: Point) -> list[int]:
        """The objects that cover any part of the pixel."""
        return [
            layer
            for layer in range(1, self.layers)
            if self.depth(layer, self.layer_point(time, layer, point)) > -0.5
        ]

    def colour(self, time: int, point: Point) -> list[float]:
        """RGB of a pixel: every layer painted over those behind it by its coverage."""
        colour = self.texture(0, self.layer_point(time, 0, point))
        for layer in self.touching(time, point):
            own = self.layer_point(time, layer, point)
            coverage = min(max(self.depth(layer, own) + 0.5, 0.0), 1.0)
            paint = self.texture(layer, own)
            colour = [c + coverage * (p - c) for c, p in zip(colour, paint, strict=True)]
        return [min(max(c, 0.0), 255.0) for c in colour]

    def texture(self, layer: int, own: Point) -> list[float]:
        """Cubic convolution (a = −3/4) in the layer's tile; the background's is reflected."""
        sx, ox, sy, oy = self.place[layer]
        x, y = sx * own[0] + ox, sy * own[1] + oy
        if layer == 0:
            x, y = self._reflected(x), self._reflected(y)
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

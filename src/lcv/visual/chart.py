"""A chart of one or several curves, drawn with Pillow: axes, ticks, names, and no more."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

from lcv.errors import ArgumentError
from lcv.visual.text import INK, PAPER, drawable, font

# Told apart also by those who do not tell red from green.
COLOURS = ("#2f6f9f", "#c8503c", "#5b8c3e", "#8a5aa8", "#c79324", "#4aa3a2")
GRID = (226, 232, 237)
SOFT = (159, 176, 189)
FINE = 3


def curves(
    series: Mapping[str, np.ndarray],
    *,
    title: str,
    x: str,
    y: str,
    log: bool = False,
    reference: float | None = None,
    size: tuple[int, int] = (400, 640),
) -> np.ndarray:
    """Curves over their index, (H, W, 3) uint8.

    series: (n,) values each, by name; the names are listed if there are several
    x, y: what is on the axes;  log: y in equal ratios;  reference: a value to draw a line at
    """
    values = {name: np.asarray(array, np.float64) for name, array in series.items()}
    for name, array in values.items():
        bad = array.ndim != 1 or not array.size or not np.isfinite(array).all()
        if bad or (log and (array <= 0).any()):
            raise ArgumentError(
                f"curves: {name!r} holds what cannot be drawn, wanted finite "
                f"{'positive ' if log else ''}numbers"
            )
    every = np.concatenate([*values.values(), [] if reference is None else [reference]])
    low, high, ticks = (_log_range if log else _range)(float(every.min()), float(every.max()))
    longest = max(map(len, values.values()))
    height, width = (FINE * side for side in size)
    page = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(page)
    box = (FINE * 62, FINE * 34, width - FINE * 18, height - FINE * 46)

    def across(index: float) -> float:
        return box[0] + (box[2] - box[0]) * index / max(1, longest - 1)

    def up(value: float) -> float:
        a, b, v = (math.log(k) if log else k for k in (low, high, value))
        return box[3] - (box[3] - box[1]) * (v - a) / (b - a)

    for tick in ticks:
        pen.line([box[0], up(tick), box[2], up(tick)], GRID, FINE)
        _write(pen, (box[0] - FINE * 7, up(tick)), f"{tick:g}", 12, "rm")
    for tick in _x_ticks(longest):
        pen.line([across(tick - 1), box[3], across(tick - 1), box[3] + FINE * 4], SOFT, FINE)
        _write(pen, (across(tick - 1), box[3] + FINE * 14), str(tick), 12, "mm")
    if reference is not None:
        pen.line([box[0], up(reference), box[2], up(reference)], SOFT, FINE * 2)
    pen.rectangle(box, outline=SOFT, width=FINE)
    for colour, array in zip(_repeated(len(values)), values.values(), strict=True):
        points = [(across(k), up(value)) for k, value in enumerate(array)]
        if len(points) > 1:
            pen.line(points, colour, FINE * 2, joint="curve")
        for point in points if longest <= 40 else ():
            _dot(pen, point, colour)
    if len(values) > 1:
        _names(pen, box, list(values))
    _write(pen, (width / 2, FINE * 17), title, 15, "mm")
    _write(pen, ((box[0] + box[2]) / 2, height - FINE * 14), x, 13, "mm")
    _write_upright(page, (FINE * 13, (box[1] + box[3]) // 2), y)
    return np.asarray(page.resize((size[1], size[0]), Image.Resampling.BOX))


def _range(low: float, high: float) -> tuple[float, float, list[float]]:
    """Where the axis begins and ends, and its ticks: whole multiples of 1, 2 or 5 times a power."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-3):  # a line, which belongs in the middle
        low, high = low - 0.5, high + 0.5
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (m * step) <= 6)
    first, last = math.floor(low / step), math.ceil(high / step)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return first * step, last * step, [round(k * step, digits) for k in range(first, last + 1)]


def _log_range(low: float, high: float) -> tuple[float, float, list[float]]:
    """The same in ratios: ticks at 1, 2 and 5 times powers of ten, fewer over many decades."""
    steps = (1, 2, 5) if high / low < 2000 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [m * 10.0**k for k in range(first - 1, last + 1) for m in steps]
    begin = max(mark for mark in marks if mark <= low * (1 + 1e-9))
    end = min(mark for mark in [*marks, 10.0 ** (last + 1)] if mark > begin and mark >= high)
    shown = [mark for mark in marks if begin <= mark <= end]
    keep = -(-len(shown) // 12)
    return begin, end, shown[::keep]


def _x_ticks(longest: int) -> list[int]:
    _, _, ticks = _range(0, longest)
    inside = [round(tick) for tick in ticks if 1 < tick <= longest and tick == round(tick)]
    return [1, *inside] if longest > 1 else [1]


def _repeated(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _dot(pen: ImageDraw.ImageDraw, point: tuple[float, float], colour: str) -> None:
    radius = FINE * 2.5
    pen.ellipse(
        [point[0] - radius, point[1] - radius, point[0] + radius, point[1] + radius], colour
    )


def _names(pen: ImageDraw.ImageDraw, box: tuple[int, int, int, int], names: list[str]) -> None:
    left, top = box[0] + FINE * 14, box[1] + FINE * 16
    for row, (name, colour) in enumerate(zip(names, _repeated(len(names)), strict=True)):
        y = top + FINE * 17 * row
        pen.line([left, y, left + FINE * 18, y], colour, FINE * 2)
        _write(pen, (left + FINE * 24, y), name, 12, "lm")


def _write(
    pen: ImageDraw.ImageDraw, place: tuple[float, float], text: str, size: int, anchor: str
) -> None:
    pen.text(place, drawable(text), INK, font(FINE * size), anchor)


def _write_upright(page: Image.Image, middle: tuple[int, int], text: str) -> None:
    face = font(FINE * 13)
    line = Image.new("RGB", (math.ceil(face.getlength(drawable(text))) + 2, FINE * 20), PAPER)
    ImageDraw.Draw(line).text(
        (line.width / 2, line.height / 2), drawable(text), INK, face, anchor="mm"
    )
    turned = line.rotate(90, expand=True)
    page.paste(turned, (middle[0] - turned.width // 2, middle[1] - turned.height // 2))

"""Two kinds of picture as SVG: lines over an axis, and values with their intervals.

Text and shapes only, no library and no script, so a picture opens anywhere and weighs little.
Colours follow the reader's light or dark setting, also in a file of its own; lines differ in dash
and marker too, since not everybody tells colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

WIDTH = 760
LIGHT = ("#0b62a4", "#c2410c", "#2e7d32", "#7b3fa0", "#a16207", "#0f766e", "#b0174c", "#475569")
DARK = ("#6cb4f0", "#ff9a5c", "#7fd088", "#c99bec", "#e3b94b", "#5fd0c3", "#ff86ad", "#a9b7c6")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
_LIGHT = {"ink": "#1d2730", "soft": "#5b6875", "grid": "#dde3e8", "paper": "#ffffff"}
_DARK = {"ink": "#e6ebf0", "soft": "#9fabb7", "grid": "#39434d", "paper": "#1a2027"}


def _style() -> str:
    def names(base: dict[str, str], colours: Sequence[str]) -> str:
        named = {**base, **{f"c{i}": colour for i, colour in enumerate(colours)}}
        return "".join(f"--{name}:{value};" for name, value in named.items())

    return (
        f"svg.lcv{{{names(_LIGHT, LIGHT)}font-family:system-ui,'Segoe UI',Helvetica,Arial,"
        f"sans-serif;font-size:13px}}"
        f"@media (prefers-color-scheme:dark){{svg.lcv{{{names(_DARK, DARK)}}}}}"
        f"svg.lcv text{{fill:var(--ink);stroke:none}}"
        f"svg.lcv .soft{{fill:var(--soft)}}svg.lcv .title{{font-weight:600;font-size:14px}}"
    )


@dataclass(frozen=True)
class Chart:
    """Shapes on a sheet of so many pixels."""

    body: str
    width: int
    height: int

    def svg(self) -> str:
        """A file of its own."""
        return self._whole('xmlns="http://www.w3.org/2000/svg" role="img"') + "\n"

    def inline(self, title: str) -> str:
        """To stand in an HTML page, where the title is read out."""
        return self._whole(f'role="img" aria-label={quoteattr(title)}')

    def _whole(self, attributes: str) -> str:
        return (
            f'<svg class="lcv" {attributes} viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}"><style>{_style()}</style>'
            f'<rect width="{self.width}" height="{self.height}" fill="var(--paper)"/>'
            f"{self.body}</svg>"
        )


@dataclass(frozen=True)
class Line:
    """Points to be joined, in the order of x; a band between low and high where they are given."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Bar:
    """A value, the ends of its interval, and the single values that it is the mean of."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    dots: Sequence[float] = field(default_factory=tuple)
    muted: bool = False


def stacked(charts: Sequence[Chart], gap: int = 18) -> Chart:
    """One below the other."""
    body, top = [], 0
    for chart in charts:
        body.append(f'<g transform="translate(0 {top})">{chart.body}</g>')
        top += chart.height + gap
    return Chart("".join(body), max(chart.width for chart in charts), top - gap)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from below `low` to above `high`: multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def label_of(value: float, step: float) -> str:
    """A tick's number with as many decimals as its step needs; a true minus sign."""
    decimals = max(0, -math.floor(math.log10(abs(step)) + 1e-9)) if step else 0
    return f"{value:.{min(decimals, 6)}f}".replace("-0.0", "0.0", 1 if not value else 0).replace(
        "-", "−"
    )


def line_chart(
    lines: Sequence[Line],
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    width: int = WIDTH,
    height: int = 300,
) -> Chart:
    """Lines with markers, a legend below.

    With `log_x` the axis is logarithmic; x = 0 is drawn half a decade left of the smallest other.
    """
    left, right, top = 62, 16, 50
    least = min((x for line in lines for x in line.x if x > 0), default=1.0)

    def along(x: float) -> float:
        if not log_x:
            return x
        return math.log10(x) if x > 0 else math.log10(least) - 0.5

    xs = [along(x) for line in lines for x in line.x]
    ys = [y for line in lines for y in (*line.y, *line.low, *line.high) if math.isfinite(y)]
    y_ticks = ticks(min(ys), max(ys))
    x_range = (min(xs), max(xs)) if max(xs) > min(xs) else (min(xs) - 0.5, max(xs) + 0.5)
    legend, rows = _legend([line.label for line in lines], left, height + 46, width)
    wide, high = width - left - right, height - top

    def px(x: float) -> float:
        return left + wide * (along(x) - x_range[0]) / (x_range[1] - x_range[0])

    def py(y: float) -> float:
        return top + high * (y_ticks[-1] - y) / (y_ticks[-1] - y_ticks[0])

    parts = [_text(16, 20, title, "title"), _text(16, top - 12, y_label, "soft")]
    step = y_ticks[1] - y_ticks[0]
    for tick in y_ticks:
        parts.append(_rule(left, py(tick), width - right, py(tick)))
        parts.append(_text(left - 8, py(tick) + 4, label_of(tick, step), "soft", "end"))
    for value, words in _x_ticks(lines, x_range, log_x):
        parts.append(_rule(px(value), height, px(value), height + 5))
        parts.append(_text(px(value), height + 19, words, "soft", "middle"))
    parts.append(_text(width - right, height + 36, x_label, "soft", "end"))
    for i, line in enumerate(lines):
        colour, points = f"var(--c{i % len(LIGHT)})", []
        if line.low:
            edge = [*zip(line.x, line.high, strict=True)]
            edge += reversed([*zip(line.x, line.low, strict=True)])
            around = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in edge)
            parts.append(f'<polygon points="{around}" fill="{colour}" opacity="0.15"/>')
        for x, y in zip(line.x, line.y, strict=True):
            if math.isfinite(y):
                points.append((px(x), py(y)))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{_dash(i)}"/>'
        )
        if len(points) <= 40:
            parts += [_marker(x, y, i) for x, y in points]
    return Chart("".join([*parts, legend]), width, height + 46 + 20 * rows)


def interval_chart(bars: Sequence[Bar], title: str, x_label: str) -> Chart:
    """A row each: the mean as a diamond on its interval, single values as dots; zero is marked.

    What reaches far beyond the others is written as a number at the edge.
    """
    left, right, top, row = 170, 20, 36, 26
    near = _comparable(bars)
    every = [v for bar in near for v in (*_numbers(bar), 0.0)]
    x_ticks = ticks(min(every), max(every), 6)
    # Their axis may have room for one that is longer than most.
    ends = x_ticks[0], x_ticks[-1]
    shown = [b for b in bars if b in near or all(ends[0] <= v <= ends[1] for v in _numbers(b))]
    bottom = top + row * len(bars)

    def px(x: float) -> float:
        return left + (WIDTH - left - right) * (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])

    parts = [_text(16, 20, title, "title")]
    step = x_ticks[1] - x_ticks[0]
    for tick in x_ticks:
        parts.append(_rule(px(tick), top, px(tick), bottom))
        parts.append(_text(px(tick), bottom + 18, label_of(tick, step), "soft", "middle"))
    for bar in bars:
        if bar.muted and bar.interval is not None:
            low, high = map(px, bar.interval)
            parts.append(
                f'<rect x="{low:.1f}" y="{top}" width="{high - low:.1f}" '
                f'height="{bottom - top}" fill="var(--c7)" opacity="0.13"/>'
            )
    parts.append(
        f'<line x1="{px(0):.1f}" y1="{top}" x2="{px(0):.1f}" y2="{bottom}" '
        f'stroke="var(--ink)" stroke-width="1.2"/>'
    )
    for i, bar in enumerate(bars):
        y = top + row * (i + 0.5)
        colour = "var(--c7)" if bar.muted else "var(--c0)"
        parts.append(_text(left - 12, y + 4, bar.label, "soft" if bar.muted else "", "end"))
        if bar not in shown:
            at, anchor, words = (WIDTH - right, "end", f"{bar.value:+.3g} →")
            if bar.value < 0:
                at, anchor, words = (left, "start", f"← {bar.value:+.3g}".replace("-", "−"))
            parts.append(_text(at, y + 4, words, "", anchor))
            continue
        if bar.interval is not None:
            low, high = map(px, bar.interval)
            parts.append(
                f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" '
                f'stroke="{colour}" stroke-width="3" opacity="0.55"/>'
            )
        parts += [
            f'<circle cx="{px(dot):.1f}" cy="{y}" r="3" fill="none" stroke="{colour}"/>'
            for dot in bar.dots
        ]
        x = px(bar.value)
        parts.append(
            f'<path d="M{x - 5.5:.1f} {y}L{x:.1f} {y - 5.5}L{x + 5.5:.1f} {y}L{x:.1f} {y + 5.5}Z" '
            f'fill="{colour}"/>'
        )
    muted = any(bar.muted and bar.interval is not None for bar in bars)
    words = x_label + ("; shaded: null control" if muted else "")
    parts.append(_text(WIDTH - right, bottom + 36, words, "soft", "end"))
    return Chart("".join(parts), WIDTH, bottom + 46)


def _comparable(bars: Sequence[Bar]) -> list[Bar]:
    """The bars that one axis can show; one ten times as long as the middle one is left to words."""
    reach = [max(map(abs, _numbers(bar))) for bar in bars]
    middle = sorted(reach)[len(reach) // 2]
    return [bar for bar, r in zip(bars, reach, strict=True) if r <= 10 * middle or not middle]


def _numbers(bar: Bar) -> tuple[float, ...]:
    return (bar.value, *(bar.interval or ()), *bar.dots)


def _x_ticks(
    lines: Sequence[Line], x_range: tuple[float, float], log: bool
) -> list[tuple[float, str]]:
    """Round numbers; the points themselves where there are few, and on a logarithmic axis."""
    points = sorted({x for line in lines for x in line.x})
    if log or len(points) <= 9:
        return [(x, f"{x:g}") for x in points]
    inside = [t for t in ticks(*x_range, 8) if x_range[0] - 1e-9 <= t <= x_range[1] + 1e-9]
    step = inside[1] - inside[0] if len(inside) > 1 else 1.0
    return [(tick, label_of(tick, step)) for tick in inside]


def _legend(labels: Sequence[str], left: int, top: int, width: int) -> tuple[str, int]:
    """Samples of the lines with their names, as many a row as fit, and the number of rows."""
    parts, x, rows = [], left, 1
    for i, label in enumerate(labels):
        wide = 44 + int(7.2 * len(label))
        if x + wide > width and x > left:
            x, rows = left, rows + 1
        y = top + 20 * (rows - 1) + 4
        parts.append(
            f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="var(--c{i % len(LIGHT)})" '
            f'stroke-width="2" stroke-dasharray="{_dash(i)}"/>{_marker(x + 12, y, i)}'
        )
        parts.append(_text(x + 30, y + 4, label))
        x += wide
    return "".join(parts), rows


def _dash(i: int) -> str:
    return DASHES[(i // len(LIGHT) + i) % len(DASHES)]


def _marker(x: float, y: float, i: int) -> str:
    fill = f'fill="var(--c{i % len(LIGHT)})"'
    if i % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" {fill}/>'
    if i % 3 == 1:
        return f'<rect x="{x - 3.1:.1f}" y="{y - 3.1:.1f}" width="6.2" height="6.2" {fill}/>'
    return (
        f'<path d="M{x - 4:.1f} {y + 3:.1f}L{x:.1f} {y - 4:.1f}L{x + 4:.1f} {y + 3:.1f}Z" {fill}/>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--grid)"/>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        f"{f' class={kind!r}' if kind else ''}>{escape(words)}</text>"
    )

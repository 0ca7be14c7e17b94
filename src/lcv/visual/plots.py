"""Plots, drawn by matplotlib: curves, and differences with their intervals.

A figure is a list of panels with one legend; a name has the same colour and marker in all of them.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_PLOTS = "no plots: matplotlib is not installed (pip install 'lcv-flow[report]')"
INK, SOFT, GRID = "#22303c", "#5b6875", "#dde3e8"
COLOURS = ("#0b62a4", "#c2410c", "#2e7d32", "#7b3fa0", "#a16207", "#0f766e", "#b0174c", "#475569")
MARKERS = "osD^v"
STYLE: Any = {
    "text.parse_math": False,  # a name may hold anything
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lcv",  # the same figure gives the same file
    "axes.formatter.useoffset": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


@dataclass(frozen=True)
class Line:
    """Points in the order of x, and a band from low to high where they are given.

    group:  lines of one group share a colour; by default each label is a group
    marker: by default that of the group, where the points are few
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    group: str = ""
    dash: Any = "-"
    marker: str | None = None
    width: float = 1.4


@dataclass(frozen=True)
class Curves:
    """A panel of lines."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    from_zero: bool = False
    height: float = 2.9


@dataclass(frozen=True)
class Bar:
    """A mean, its interval, and the values that it is the mean of."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    dots: Sequence[float] = ()
    muted: bool = False

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.value, *(self.interval or ()), *self.dots)


@dataclass(frozen=True)
class Bars:
    """A panel of differences to zero, one row each."""

    title: str
    x_label: str
    bars: Sequence[Bar]

    @property
    def height(self) -> float:
        return 0.9 + 0.28 * len(self.bars)


def draw(
    panels: Sequence[Curves | Bars], columns: int = 1, title: str = "", width: float = 7.6
) -> Figure:
    """The panels row by row, with one legend below. width: in inches"""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    heights = [max(panel.height for panel in row) for row in rows]
    lines = [line for panel in panels if isinstance(panel, Curves) for line in panel.lines]
    groups = list(dict.fromkeys(line.group or line.label for line in lines))
    letters = 11.6 * width  # that fit into a row
    with rc_context(STYLE):
        figure = Figure(figsize=(width, sum(heights) + 0.6), layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights).ravel()
        entries: dict[str, Any] = {}
        for axis, panel in zip(axes, panels, strict=False):
            axis.set_title(textwrap.fill(panel.title, int(letters / columns)), loc="left")
            axis.set_xlabel(panel.x_label)
            if isinstance(panel, Curves):
                _draw_curves(axis, panel, groups)
            else:
                _draw_bars(axis, panel)
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                entries.setdefault(textwrap.fill(label, int(0.8 * letters)), handle)
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=max(1, int(letters / (6 + max(map(len, entries), default=1)))),
            frameon=False,
            fontsize=9,
        )
        figure.suptitle(title, fontsize=12)
    return figure


def svg(panels: Sequence[Curves | Bars], **options: Any) -> str | None:
    """What `draw` draws, as SVG; None without matplotlib."""
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError:
        return None
    text = io.StringIO()
    with rc_context(STYLE):
        draw(panels, **options).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _draw_curves(axis: Axes, panel: Curves, groups: Sequence[str]) -> None:
    for line in panel.lines:
        place = groups.index(line.group or line.label)
        colour = COLOURS[place % len(COLOURS)]
        marker = MARKERS[place % len(MARKERS)] if len(line.x) <= 40 else ""
        axis.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=line.dash,
            linewidth=line.width,
            marker=marker if line.marker is None else line.marker,
            markersize=3.5,
            label=line.label,
        )
        if line.low:
            axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.13, linewidth=0)
    axis.set_ylabel(panel.y_label)
    if panel.from_zero:
        axis.set_ylim(bottom=0)
    axis.grid(axis="y", color=GRID, linewidth=0.7)
    levels = sorted({x for line in panel.lines for x in line.x})
    above = [level for level in levels if level > 0]
    if panel.log_x and above:
        if len(above) == len(levels):
            axis.set_xscale("log")
        else:  # 0 has its place to the left of the smallest level
            axis.set_xscale("symlog", linthresh=above[0], linscale=0.5)
    if panel.log_x or len(levels) <= 9:
        axis.set_xticks(levels, _tick_labels(axis, levels))
        axis.minorticks_off()


def _tick_labels(axis: Axes, levels: Sequence[float]) -> list[str]:
    """The levels in words, without those that would be printed over the one before."""
    places = axis.transAxes.inverted().transform(
        axis.transData.transform([(level, 0.0) for level in levels])
    )[:, 0]
    labels, end = [], -1.0
    for level, place in zip(levels, places, strict=True):
        half = 0.011 * (len(f"{level:g}") + 1)  # of a letter, where a panel is 1 wide
        labels.append(f"{level:g}" if place - half >= end else "")
        end = place + half if labels[-1] else end
    return labels


def _draw_bars(axis: Axes, panel: Bars) -> None:
    """A diamond for each mean, on its interval, with dots; one off the axis is written as a number."""
    fitting = _fitting(panel.bars)
    axis.set_yticks(range(len(panel.bars)), [bar.label for bar in panel.bars])
    axis.set_ylim(len(panel.bars) - 0.5, -0.5)
    axis.grid(axis="x", color=GRID, linewidth=0.7)
    axis.axvline(0, color=INK, linewidth=1.2)
    for y, bar in enumerate(panel.bars):
        colour = COLOURS[7 if bar.muted else 0]
        if bar not in fitting:
            words = f"← {bar.value:+.3g}" if bar.value < 0 else f"{bar.value:+.3g} →"
            x, side = (0, "left") if bar.value < 0 else (1, "right")
            style: Any = {"ha": side, "va": "center", "size": 8}
            axis.text(x, y, words.replace("-", "−"), transform=axis.get_yaxis_transform(), **style)
            continue
        if bar.interval is not None:
            axis.hlines(y, *bar.interval, color=colour, linewidth=3, alpha=0.55)
            if bar.muted:
                axis.axvspan(*bar.interval, color=colour, alpha=0.13, linewidth=0)
                axis.set_xlabel(f"{panel.x_label}; shaded: null control")
        axis.plot(bar.dots, [y] * len(bar.dots), "o", color=colour, fillstyle="none", markersize=4)
        axis.plot([bar.value], [y], "D", color=colour, markersize=5)


def _fitting(bars: Sequence[Bar]) -> list[Bar]:
    """All but those ten times as long as the middle one and much longer than the next."""
    reach = [max(map(abs, bar.numbers)) for bar in bars]
    middle = sorted(reach)[len(reach) // 2]
    longest = max(each for each in reach if each <= 10 * middle or not middle)
    return [bar for bar, each in zip(bars, reach, strict=True) if each <= 1.5 * longest]

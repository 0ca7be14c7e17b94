"""Curves of error over severity: a panel a stress, a line a network, a band its interval."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lcv.evaluate.metrics import METRICS
from lcv.studies.robustness.results import NONE, Key, Study
from lcv.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#22303c"
COLOURS = ("#c8503c", "#2f6f9f", "#5f8f3e", "#8a5fa8", "#b98a1e", "#4f5b66")
CONTROLS = {
    "random": ("random pixels", (0, (4, 2))),
    "matched": ("random patch of the same statistics", (0, (1, 1.5))),
}
"""Words and line of what a patch is held against."""


def curves_of(study: Study, source: str, metric: str = "epe_image") -> list[dict[str, Any]]:
    """The points of every panel: stress, network, levels, values, and intervals where there are any.

    metric: one with an interval, "epe_image" or "fl_image"
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    here = sorted((key for key in study.cells if key[0] == source), key=lambda key: key[3])
    for key in here:
        _, network, stress, level = key
        if stress == NONE:
            continue
        cell = study.described(key)
        curve = found.setdefault(
            (stress, network),
            {"stress": stress, "network": network, "levels": [], "values": [], "intervals": []},
        )
        curve["levels"].append(level)
        curve["values"].append(cell["metrics"][metric])
        curve["intervals"].append(cell["intervals"].get(metric))
    order = {name: place for place, name in enumerate(study.about["stresses"])}
    return sorted(found.values(), key=lambda curve: order.get(curve["stress"], len(order)))


def curves_figure(study: Study, source: str, metric: str = "epe_image") -> Figure:
    """All stresses of one source; a patch and its controls share a panel, these in broken lines."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    curves = curves_of(study, source, metric)
    panels = list(dict.fromkeys(_panel_of(curve["stress"]) for curve in curves))
    networks = list(dict.fromkeys(curve["network"] for curve in curves))
    # Four side by side would be too small to read on a page.
    columns = min(2 if len(panels) <= 4 else 4, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.9 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        _draw(
            axis,
            study,
            source,
            panel,
            [c for c in curves if _panel_of(c["stress"]) == panel],
            networks,
            metric,
        )
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    kinds = {_control_of(curve["stress"]) for curve in curves}
    for kind, (words, line) in CONTROLS.items():
        if kind in kinds:
            points = all(len(c["levels"]) == 1 for c in curves if _control_of(c["stress"]) == kind)
            style: dict[str, Any] = {"linestyle": "", "marker": "x"} if points else {}
            handles.append(Line2D([], [], color=INK, **({"linestyle": line} | style)))
            labels.append(words)
    handles.append(Line2D([], [], color=INK, linestyle=":", linewidth=0.7))
    labels.append("frames as they are")
    labels = [textwrap.fill(label, 36 * columns) for label in labels]
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=_legend_columns(labels, columns),
        frameon=False,
        fontsize=9,
    )
    figure.suptitle(
        f"{source}: {counted(len(study.groups[source]), 'pair')}", color=INK, fontsize=12
    )
    return figure


def _legend_columns(labels: Sequence[str], panels: int) -> int:
    """As many as fit side by side: a panel is about as wide as 44 letters, a line's sample as 6."""
    fit = 44 * panels // (6 + max(map(len, labels)))
    return max(1, min(3 if panels < 3 else 4, len(labels), fit))


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


def _control_of(stress: str) -> str | None:
    kind, colon, _ = stress.partition(":")
    return kind if colon and kind in CONTROLS else None


def _panel_of(stress: str) -> str:
    return stress if _control_of(stress) is None else f"patch:{stress.partition(':')[2]}"


def _draw(
    axis: Axes,
    study: Study,
    source: str,
    panel: str,
    curves: Sequence[dict[str, Any]],
    networks: Sequence[str],
    metric: str,
) -> None:
    about = study.about["stresses"].get(panel) or study.about["stresses"][curves[0]["stress"]]
    for curve in curves:
        colour = COLOURS[networks.index(curve["network"]) % len(COLOURS)]
        control = _control_of(curve["stress"])
        label = None if control else curve["network"]
        style: dict[str, Any] = {"marker": "o", "markersize": 3}
        if control:
            style = {"linestyle": CONTROLS[control][1]}
            # A line of one point is not seen.
            style |= {"marker": "x", "markersize": 6} if len(curve["levels"]) == 1 else {}
        axis.plot(
            curve["levels"], curve["values"], color=colour, linewidth=1.4, label=label, **style
        )
        spans = curve["intervals"]
        if not control and all(spans):
            low, high = zip(*spans, strict=True)
            axis.fill_between(curve["levels"], low, high, color=colour, alpha=0.13, linewidth=0)
    for network in networks:
        key: Key = (source, network, NONE, 0.0)
        if key in study.cells:
            value = study.described(key)["metrics"][metric]
            colour = COLOURS[networks.index(network) % len(COLOURS)]
            axis.axhline(value, color=colour, linewidth=0.7, alpha=0.5, linestyle=":")
    levels = sorted({level for curve in curves for level in curve["levels"]})
    if about["log"]:
        above = [level for level in levels if level > 0]
        if len(above) == len(levels):
            axis.set_xscale("log")
        elif above:  # 0 has its place to the left of the smallest level
            axis.set_xscale("symlog", linthresh=above[0], linscale=0.5)
    axis.set_xticks(levels, _tick_labels(axis, levels))
    axis.minorticks_off()
    axis.set_title(textwrap.fill(about["label"], 44), color=INK, fontsize=9)
    axis.set_xlabel(about["unit"], color=INK, fontsize=8)
    named = METRICS[metric]
    axis.set_ylabel(f"{named.title} ({named.unit})", color=INK, fontsize=8)
    axis.tick_params(labelsize=7, colors=INK)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)

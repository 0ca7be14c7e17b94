"""Curves of error over severity: a panel a stress, a line a network, a band its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lcv.evaluate.metrics import METRICS
from lcv.studies.robustness.results import NONE, Study
from lcv.visual.plots import Curves, Line, draw
from lcv.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLS: dict[str, tuple[str, Any]] = {
    "random": ("random pixels", (0, (4, 2))),
    "matched": ("random patch of the same statistics", (0, (1, 1.5))),
}
"""The controls of a patch: words and line style."""
PLAIN = "frames as they are"


def curves_of(study: Study, source: str, metric: str = "epe_image") -> list[dict[str, Any]]:
    """The points of every curve: stress, network, levels, values, and intervals where there are any.

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


def panels(study: Study, source: str, metric: str = "epe_image") -> list[Curves]:
    """A panel a stress; a patch and its controls share one, and the frames as they are are dotted."""
    by_panel: dict[str, list[dict[str, Any]]] = {}
    for curve in curves_of(study, source, metric):
        kind, _, patch = curve["stress"].partition(":")
        name = f"patch:{patch}" if kind in CONTROLS else curve["stress"]
        by_panel.setdefault(name, []).append(curve)
    found = []
    for name, curves in by_panel.items():
        known = study.about["stresses"]
        about = known.get(name) or known.get(curves[0]["stress"], {"label": name, "unit": "level"})
        lines = [_line(curve) for curve in curves]
        levels = [level for line in lines for level in line.x]
        for network in dict.fromkeys(curve["network"] for curve in curves):
            if (source, network, NONE, 0.0) in study.cells:
                plain = study.described((source, network, NONE, 0.0))["metrics"][metric]
                ends = [min(levels), max(levels)]
                line = Line(PLAIN, ends, [plain] * 2, (), (), network, ":", "", 0.7)
                lines.append(line)
        error = f"{METRICS[metric].title} ({METRICS[metric].unit})"
        log = bool(about.get("log"))
        found.append(Curves(about["label"], about["unit"], error, lines, log))
    return found


def _line(curve: dict[str, Any]) -> Line:
    kind, _, _ = curve["stress"].partition(":")
    points = curve["levels"], curve["values"]
    if kind in CONTROLS:
        label, dash = CONTROLS[kind]
        return Line(label, *points, group=curve["network"], dash=dash, marker="x")
    low, high = zip(*curve["intervals"], strict=True) if all(curve["intervals"]) else ((), ())
    return Line(curve["network"], *points, low, high)


def curves_figure(study: Study, source: str, metric: str = "epe_image") -> Figure:
    """All stresses of one source."""
    drawn = panels(study, source, metric)
    columns = 2 if len(drawn) <= 4 else 4  # four side by side are too small to read on a page
    title = f"{source}: {counted(len(study.groups[source]), 'pair')}"
    return draw(drawn, columns, title, 3.4 * columns)

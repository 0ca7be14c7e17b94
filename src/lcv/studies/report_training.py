"""Training runs as curves: errors, loss, and how far W moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lcv.studies.blocks import Block, Heading, Row, TableBlock, chart
from lcv.studies.report_sources import Training
from lcv.visual.plots import Curves, Line

MOST_POINTS = 200


def training(sources: Sequence[Training]) -> list[Block]:
    """A table of the runs, and curves of all of them."""
    if not sources:
        return []
    head = (
        "run",
        "network",
        "W",
        "steps",
        "batch",
        "peak rate",
        "precision",
        "seed",
        "last EPE px",
    )
    blocks: list[Block] = [
        Heading("Training"),
        TableBlock("Runs", head, tuple(_row(source) for source in sources)),
    ]
    panels = []
    for title, kind, name, label in (
        ("Training error", "train", "epe", "EPE, px"),
        ("Loss", "train", "loss", "loss"),
        ("How far W is from I: ‖W − I‖ / ‖I‖", "train", "w_distance", ""),
        ("Validation error", "validation", "/epe", "EPE, px"),
    ):
        lines = [line for source in sources for line in _lines(source, kind, name)]
        if lines:
            panels.append(Curves(title, "steps", label, lines))
    return [*blocks, *chart(panels, "; ".join(panel.title for panel in panels), columns=2)]


def _row(source: Training) -> Row:
    def said(*names: str) -> str:
        value: Any = source.config
        for name in names:
            value = value.get(name, {}) if isinstance(value, dict) else {}
        return (
            "–" if value in ({}, None) else f"{value:g}" if isinstance(value, float) else str(value)
        )

    errors = [
        entry["epe"] for entry in source.entries if entry["kind"] == "train" and "epe" in entry
    ]
    steps = max((entry["step"] for entry in source.entries), default=0)
    return Row(
        (
            source.name,
            said("model", "name"),
            said("model", "inner_product"),
            f"{steps} of {said('steps')}",
            said("batch"),
            said("optim", "lr"),
            said("precision"),
            said("seed"),
            f"{errors[-1]:.3f}" if errors else "–",
        )
    )


def _lines(source: Training, kind: str, wanted: str) -> list[Line]:
    """A line for each number of the log with this name, or this "/ending"; at most MOST_POINTS."""
    entries = [entry for entry in source.entries if entry["kind"] == kind]
    names = dict.fromkeys(name for entry in entries for name in entry)
    lines = []
    for name in names:
        if name != wanted and not (wanted.startswith("/") and name.endswith(wanted)):
            continue
        points = [(entry["step"], entry[name]) for entry in entries if name in entry]
        every = -(-len(points) // MOST_POINTS)
        steps, values = zip(*dict.fromkeys((*points[::every], points[-1])), strict=True)
        label = source.name if kind == "train" else f"{source.name}, {name.removesuffix(wanted)}"
        lines.append(Line(label, steps, values))
    return lines

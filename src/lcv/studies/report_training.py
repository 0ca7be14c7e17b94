"""Training runs as curves: what was learned, on what, and where W went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lcv.studies.charts import Line, line_chart
from lcv.studies.report_blocks import Block, ChartBlock, Heading, Row, TableBlock
from lcv.studies.report_sources import Training

MOST_POINTS = 200


def training(sources: Sequence[Training]) -> list[Block]:
    """A table of the runs, and all of them in each of a few pictures."""
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
    for title, kind, name, label in (
        ("Training error", "train", "epe", "EPE, px"),
        ("Loss", "train", "loss", "loss"),
        ("How far W has gone from I: ‖W − I‖ / ‖I‖", "train", "w_distance", ""),
    ):
        lines = [line for source in sources if (line := _line(source, kind, name)) is not None]
        if lines:
            blocks.append(ChartBlock(line_chart(lines, title, "steps", label), title))
    validated = [
        line
        for source in sources
        for name in _validations(source)
        if (line := _line(source, "validation", name)) is not None
    ]
    if validated:
        title = "Validation error"
        blocks.append(ChartBlock(line_chart(validated, title, "steps", "EPE, px"), title))
    return blocks


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


def _validations(source: Training) -> list[str]:
    entries = [entry for entry in source.entries if entry["kind"] == "validation"]
    return list(dict.fromkeys(n for entry in entries for n in entry if n.endswith("/epe")))


def _line(source: Training, kind: str, name: str) -> Line | None:
    points = [(e["step"], e[name]) for e in source.entries if e["kind"] == kind and name in e]
    if not points:
        return None
    every = -(-len(points) // MOST_POINTS)
    kept = [*points[::every], *([points[-1]] if (len(points) - 1) % every else [])]
    label = source.name if kind == "train" else f"{source.name}, {name.removesuffix('/epe')}"
    return Line(label, [float(step) for step, _ in kept], [float(value) for _, value in kept])

"""A finished run in one look: its errors on held-out pairs, in a sentence and as curve.png."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.files import whole_file
from lcv.train.config import TrainConfig
from lcv.train.log import read_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, CURVES = "#22303c", ("#2f6f9f", "#c8503c", "#4f8a4c", "#8a5fa8", "#b0862d")


MEASURES = {"epe": ("EPE", " px"), "census": ("census loss", "")}
"""What is drawn, by its name in the log: how it is called, and its unit."""


@dataclass(frozen=True)
class Curve:
    """An error against the step on one dataset; zero: what no motion at all has there."""

    name: str
    steps: list[int]
    values: list[float]
    zero: float | None = None
    measure: str = "epe"

    @property
    def unit(self) -> str:
        return MEASURES[self.measure][1]


def read_curves(folder: str | os.PathLike[str]) -> tuple[list[Curve], Curve]:
    """The validations of a run by dataset, and its EPE on the pairs that it was training on."""
    entries = read_log(Path(folder) / "log.jsonl")
    validations = [entry for entry in entries if entry["kind"] == "validation"]
    found = []
    for key in {key: None for entry in validations for key in entry}:
        name, _, measure = key.rpartition("/")
        if measure in MEASURES:
            own = [entry for entry in validations if key in entry]
            zero = own[-1].get(f"{name}/zero_flow_{measure}")
            steps, values = [e["step"] for e in own], [e[key] for e in own]
            found.append(Curve(name, steps, values, zero, measure))
    seen = [entry for entry in entries if entry["kind"] == "train" and "epe" in entry]
    return found, Curve("training", [e["step"] for e in seen], [e["epe"] for e in seen])


def sentence(curve: Curve, goal: float | None = None) -> str:
    """The last error, and its share of that of zero flow."""
    what, unit = MEASURES[curve.measure]
    text = f"{curve.name}: {what} {curve.values[-1]:.3f}{unit} after step {curve.steps[-1]}"
    if curve.zero:
        share = curve.values[-1] / curve.zero
        text += f", {share:.1%} of the {curve.zero:.3f}{unit} of zero flow"
        text += f" (wanted: below {goal:.0%})" if goal is not None else ""
    return text


def curve_figure(curves: list[Curve], training: Curve, goal: float | None = None) -> Figure:
    """Each dataset's error, dashed that of zero flow, dotted the goal; pale, training's EPE.

    Each measure has axes of its own.
    """
    from matplotlib.figure import Figure

    measures = [m for m in MEASURES if any(curve.measure == m for curve in curves)]
    figure = Figure(figsize=(7.2, 4.2 * len(measures)), layout="constrained")
    axes = figure.subplots(len(measures), squeeze=False).flat
    for axis, measure in zip(axes, measures, strict=True):
        if measure == training.measure:
            seen = training.steps, training.values
            axis.plot(*seen, color="#c3ccd3", linewidth=1, label=training.name)
        for i, curve in enumerate(c for c in curves if c.measure == measure):
            _draw(axis, curve, CURVES[i % len(CURVES)], goal)
        what, unit = MEASURES[measure]
        axis.set_xlabel("step", color=INK)
        axis.set_ylabel(f"{what},{unit}" if unit else what, color=INK)
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=9)
    return figure


def _draw(axis: Axes, curve: Curve, colour: str, goal: float | None) -> None:
    label = f"{curve.name}, {curve.values[-1]:.2f}{curve.unit} at the end"
    axis.plot(curve.steps, curve.values, "o-", color=colour, label=label)
    if curve.zero:
        label = f"{curve.name}, zero flow: {curve.zero:.2f}{curve.unit}"
        axis.axhline(curve.zero, color=colour, linestyle="--", linewidth=1, label=label)
        if goal is not None:
            label = f"{goal:.0%} of it: {goal * curve.zero:.2f}{curve.unit}"
            axis.axhline(goal * curve.zero, color=colour, linestyle=":", label=label)


def leave_curve(config: TrainConfig) -> list[str]:
    """Write curve.png into a run's folder; what there is to say of it and of the last errors."""
    curves, training = read_curves(config.folder)
    if not curves:
        return []
    lines = [sentence(curve, config.goal) for curve in curves]
    path = Path(config.folder) / "curve.png"
    try:
        figure = curve_figure(curves, training, config.goal)
    except ImportError:
        why = "no curve.png, since matplotlib is not installed: `pip install 'lcv-flow[report]'`"
        return [*lines, f"{why}; its numbers are in {path.with_name('log.jsonl')}"]
    with whole_file(path, overwrite=True) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    return [*lines, f"the curve: {path}"]

"""A finished run in one look: its errors on held-out pairs, in a sentence and as curve.png."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.files import whole_file
from lcv.train.config import TrainConfig
from lcv.train.log import read_log
from lcv.visual.plots import Curves, Line, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """Each dataset's error, dashed that of zero flow, dotted the goal; and training's EPE.

    Each measure has axes of its own.
    """
    panels = []
    for measure, (what, unit) in MEASURES.items():
        own = [curve for curve in curves if curve.measure == measure]
        lines = [line for curve in own for line in _lines(curve, goal)]
        if own and measure == training.measure:
            lines.append(Line(training.name, training.steps, training.values, marker="", width=0.7))
        if own:
            label = f"{what},{unit}" if unit else what
            panels.append(Curves("", "step", label, lines, from_zero=True))
    return draw(panels)


def _lines(curve: Curve, goal: float | None) -> list[Line]:
    last = f"{curve.name}, {curve.values[-1]:.2f}{curve.unit} at the end"
    lines = [Line(last, curve.steps, curve.values, group=curve.name)]
    if curve.zero:
        level = partial(Line, x=[0, curve.steps[-1]], group=curve.name, marker="", width=1)
        label = f"{curve.name}, zero flow: {curve.zero:.2f}{curve.unit}"
        lines.append(level(label, y=[curve.zero] * 2, dash="--"))
        if goal is not None:
            label = f"{goal:.0%} of it: {goal * curve.zero:.2f}{curve.unit}"
            lines.append(level(label, y=[goal * curve.zero] * 2, dash=":"))
    return lines


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

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
    from matplotlib.figure import Figure

INK, CURVES = "#22303c", ("#2f6f9f", "#c8503c", "#4f8a4c", "#8a5fa8", "#b0862d")


@dataclass(frozen=True)
class Curve:
    """EPE in px against the step on one dataset; zero: what no motion at all has there."""

    name: str
    steps: list[int]
    epe: list[float]
    zero: float | None = None


def read_curves(folder: str | os.PathLike[str]) -> tuple[list[Curve], Curve]:
    """The validations of a run by dataset, and its EPE on the pairs that it was training on."""
    entries = read_log(Path(folder) / "log.jsonl")
    validations = [entry for entry in entries if entry["kind"] == "validation"]
    found = []
    for key in {key: None for entry in validations for key in entry if key.endswith("/epe")}:
        own = [entry for entry in validations if key in entry]
        name = key.removesuffix("/epe")
        zero = own[-1].get(f"{name}/zero_flow_epe")
        found.append(Curve(name, [e["step"] for e in own], [e[key] for e in own], zero))
    seen = [entry for entry in entries if entry["kind"] == "train" and "epe" in entry]
    return found, Curve("training", [e["step"] for e in seen], [e["epe"] for e in seen])


def sentence(curve: Curve, goal: float | None = None) -> str:
    """The last EPE, and its share of that of zero flow."""
    text = f"{curve.name}: EPE {curve.epe[-1]:.3f} px after step {curve.steps[-1]}"
    if curve.zero:
        text += f", {curve.epe[-1] / curve.zero:.1%} of the {curve.zero:.3f} px of zero flow"
        text += f" (wanted: below {goal:.0%})" if goal is not None else ""
    return text


def curve_figure(curves: list[Curve], training: Curve, goal: float | None = None) -> Figure:
    """Each dataset's EPE, dashed its zero-flow error, dotted the goal; pale, training's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.plot(training.steps, training.epe, color="#c3ccd3", linewidth=1, label=training.name)
    for i, curve in enumerate(curves):
        colour = CURVES[i % len(CURVES)]
        label = f"{curve.name}, {curve.epe[-1]:.2f} px at the end"
        axis.plot(curve.steps, curve.epe, "o-", color=colour, label=label)
        if curve.zero:
            label = f"{curve.name}, zero flow: {curve.zero:.2f} px"
            axis.axhline(curve.zero, color=colour, linestyle="--", linewidth=1, label=label)
            if goal is not None:
                label = f"{goal:.0%} of it: {goal * curve.zero:.2f} px"
                axis.axhline(goal * curve.zero, color=colour, linestyle=":", label=label)
    axis.set_xlabel("step", color=INK)
    axis.set_ylabel("EPE, px", color=INK)
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
    return figure


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

"""What the page says about a learned W: numbers, pictures, and what they mean and do not mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lcv.demo.networks import loaded
from lcv.visual.inspection import Level, features_of, inspect_model
from lcv.visual.weight_pictures import (
    angles_chart,
    eigen_feature_maps,
    matrix_picture,
    spectrum_chart,
)

MEANING = """
**What it is.** A cost volume holds, for pixels of both frames, how alike their features f₁ and f₂
are. Plain networks take f₁ · f₂. A learnable cost volume takes **f₁ᵀ W f₂** with W = PᵀΛP learned
along with the rest: P turns the channels, the positive eigenvalues in Λ weigh them. W = I is the
plain product, and where training starts.

**How to read it.** Eigenvalues far from 1 are directions of the features that count for more, or
for less, than in the plain product. The condition number is the largest over the smallest. The angles are
those by which P turns; W does not change where P turns among equal eigenvalues.

**What it does not mean.** RAFT's features come out of a linear layer, so W **folds** into it exactly:
with Q = Λ^½P, f₁ᵀWf₂ = (Qf₁)·(Qf₂). A plain RAFT can compute everything that RAFT with LCV can
(`lcv fold` shows it), so here W changes how a network *learns*, not what it can *express*; and a
spectrum says something about W only together with the features it was learned with. Nor do two
twins show that one is better: for that, see many seeds and `lcv ablate`.
"""
CHART = (260, 360)
"""Height and width of the charts: their letters stay readable on a telephone."""
MAP = 240
"""The width of a map of features."""


@dataclass(frozen=True, eq=False)
class Learned:
    """One network's W: numbers, charts and maps of features, each by its name on the page."""

    numbers: dict[str, str]
    charts: dict[str, np.ndarray]
    maps: dict[str, np.ndarray]


def learned(name: str, frame: np.ndarray) -> Learned:
    """The W of a network, and a frame's features along what it weighs most and least."""
    model = loaded(name)
    levels = inspect_model(model)
    level_name, level = next(iter(levels.items()))
    image = torch.from_numpy(np.array(frame)).movedim(2, 0)[None].float()
    features = features_of(model, image)[level_name]
    size = MAP, max(1, round(MAP * frame.shape[0] / frame.shape[1]))
    most, least = eigen_feature_maps(features, level, size)
    charts = {
        "Eigenvalues of W": spectrum_chart(levels, CHART),
        "Angles by which P turns": angles_chart(levels, CHART),
        "W − I, one square an entry": matrix_picture(level),
    }
    return Learned(
        numbers=_numbers(level),
        charts={title: chart for title, chart in charts.items() if chart is not None},
        maps=dict([*most, *least]),
    )


def _numbers(level: Level) -> dict[str, str]:
    lam, about = level.summary.eigenvalues, level.summary
    turned = {"Largest angle of P": f"{float(about.angles[-1].rad2deg()):.3g}°"}
    return {
        "Channels": str(len(lam)),
        "Eigenvalues": f"{float(lam[0]):.3g} to {float(lam[-1]):.3g}",
        "Condition number": f"{about.condition:.3g}",
        "‖W − I‖ / ‖I‖": f"{about.distance:.3g}",
        **(turned if level.angles else {}),
    }

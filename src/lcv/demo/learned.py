"""What the page says about a learned W: numbers, pictures, and what they mean and do not mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lcv.demo.work import network
from lcv.errors import ArgumentError
from lcv.models.build import spec_of
from lcv.models.embedded import EMBEDDED, embedded_card
from lcv.visual.inspection import Level, features_of, inspect_model
from lcv.visual.weight_pictures import (
    angles_chart,
    eigen_feature_figure,
    matrix_picture,
    spectrum_chart,
)

WITH_W = tuple(
    name for name in EMBEDDED if embedded_card(name)["model"]["inner_product"] != "euclidean"
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


@dataclass(frozen=True, eq=False)
class Learned:
    """One network's W: a table in Markdown, and pictures."""

    table: str
    spectrum: np.ndarray
    angles: np.ndarray | None
    matrix: np.ndarray
    features: np.ndarray


def learned(name: str, frame: np.ndarray) -> Learned:
    """The W of one of WITH_W, and a frame's features along what it weighs most and least."""
    if name not in WITH_W:
        raise ArgumentError(f"{name!r} has no learned W; there are {', '.join(WITH_W)}")
    model = network(name, 12).model
    levels = inspect_model(model)
    level_name, level = next(iter(levels.items()))
    image = torch.from_numpy(np.array(frame)).movedim(2, 0)[None].float()
    features = features_of(model, image)[level_name]
    return Learned(
        table=_table(name, spec_of(model).inner_product, level),
        spectrum=spectrum_chart(levels),
        angles=angles_chart(levels),
        matrix=matrix_picture(level),
        features=eigen_feature_figure(frame, features, level),
    )


def _table(name: str, kind: str, level: Level) -> str:
    lam, about = level.summary.eigenvalues, level.summary
    turned = f"{float(about.angles[-1].rad2deg()):.3g}°" if level.angles else "–"
    return (
        f"| {name} | channels | smallest λ | largest λ | condition | ‖W − I‖ / ‖I‖ | largest angle of P |\n"
        f"|---|---|---|---|---|---|---|\n"
        f"| {kind} W | {len(lam)} | {float(lam[0]):.3g} | {float(lam[-1]):.3g} | "
        f"{about.condition:.3g} | {about.distance:.3g} | {turned} |"
    )

"""Pictures of an inner product: what W does to lengths and angles (the paper's figure 1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#22303c"
COLOURS = ("#c8503c", "#2f6f9f")


def two_vectors_figure(
    a: Tensor, b: Tensor, W: Tensor, Q: Tensor, names: tuple[str, str] = ("f₁", "f₂")
) -> Figure:
    """Figure 1: two vectors under the standard and under an elliptical inner product.

    Three panels: the vectors and the unit circle xᵀx = 1; the same vectors and the ellipse
    xᵀWx = 1; and both seen through Q = Λ^½P, where the ellipse is the circle again and the
    elliptical product is the ordinary one, Eq. (10).

    a, b: (2,), W: (2, 2) symmetric positive definite, Q: (2, 2) with QᵀQ = W
    names: of a and b
    """
    from matplotlib.figure import Figure

    a, b, W, Q = (x.detach().double() for x in (a, b, W, Q))
    turn = torch.linspace(0, 2 * math.pi, 361, dtype=torch.float64)
    circle = torch.stack([turn.cos(), turn.sin()])  # (2, n)
    ellipse = torch.linalg.solve(Q, circle)
    Qa, Qb = Q @ a, Q @ b
    first, second = names
    seen = f"Q{first}", f"Q{second}"
    panels = [
        ("standard", f"{first}ᵀ{second}", circle, (a, b), names, a @ b),
        ("elliptical", f"{first}ᵀW{second}", ellipse, (a, b), names, a @ W @ b),
        ("elliptical, seen through Q", f"({seen[0]})·({seen[1]})", circle, (Qa, Qb), seen, Qa @ Qb),
    ]
    reach = 1.3 * max(float(x.abs().max()) for x in (ellipse, circle, a, b, Qa, Qb))
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for axis, (title, formula, ball, vectors, names, value) in zip(axes, panels, strict=True):
        _panel(axis, ball, vectors, names, reach)
        axis.set_title(title, color=INK, fontsize=12)
        axis.set_xlabel(f"{formula} = {float(value):z.2f}", color=INK, fontsize=11)
    return figure


def _panel(
    axis: Axes, ball: Tensor, vectors: tuple[Tensor, ...], names: tuple[str, ...], reach: float
) -> None:
    axis.fill(*ball.numpy(), color="#e9eef2", zorder=0)
    axis.plot(*ball.numpy(), color="#9fb0bd", linewidth=1.2, zorder=1)
    for vector, colour, name in zip(vectors, COLOURS, names, strict=True):
        x, y = vector.tolist()
        axis.annotate(
            "", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2.2}
        )
        length = math.hypot(x, y)
        axis.text(
            x + 0.1 * reach * x / length,
            y + 0.1 * reach * y / length,
            name,
            color=colour,
            ha="center",
            va="center",
        )
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-reach, reach)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
    for side in axis.spines.values():
        side.set_color("#c9d3da")

"""The paper's figure 1, drawn from our own numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import orthogonalising_matrix
from lcv.visual.inner_product_plots import two_vectors_figure


def test_figure_1_shows_the_products_it_claims():
    a, b = torch.tensor([1.0, 0.2]).double(), torch.tensor([0.5, 0.9]).double()
    product = elliptical_from_matrix(orthogonalising_matrix(a, b))
    figure = two_vectors_figure(a, b, product.matrix(), product.factor_matrix())
    labels = [axis.get_xlabel() for axis in figure.axes]
    assert labels == ["f₁ᵀf₂ = 0.68", "f₁ᵀWf₂ = 0.00", "(Qf₁)·(Qf₂) = 0.00"]
    # In the third panel the arrows end at Qf₁ and Qf₂, at a right angle and of unchanged length.
    ends = [torch.tensor(note.xy) for note in figure.axes[2].texts if hasattr(note, "xy")]
    torch.testing.assert_close(ends[0] @ ends[1], torch.tensor(0.0), atol=1e-6, rtol=0)
    torch.testing.assert_close(ends[0].norm().double(), a.norm())


def test_what_the_panels_of_figure_1_show():
    """W = diag(4, 1): the ellipse is half as wide as the circle, which Q = diag(2, 1) makes of it."""
    a, b = torch.tensor([3.0, 0.0]), torch.tensor([0.0, -2.0])
    W, Q = torch.diag(torch.tensor([4.0, 1.0])), torch.diag(torch.tensor([2.0, 1.0]))
    figure = two_vectors_figure(a, b, W, Q, names=("a", "b"))
    assert figure.get_size_inches().tolist() == pytest.approx([10.5, 3.9])
    reach = 1.3 * 6
    titles = ["standard", "elliptical", "elliptical, seen through Q"]
    ends = [[(3, 0), (0, -2)], [(3, 0), (0, -2)], [(6, 0), (0, -2)]]
    names = [["a", "b"], ["a", "b"], ["Qa", "Qb"]]
    for axis, title, wide, end, name in zip(
        figure.axes, titles, (1.0, 0.5, 1.0), ends, names, strict=True
    ):
        assert axis.get_title() == title
        assert (axis.title.get_fontsize(), axis.xaxis.label.get_fontsize()) == (12, 11)
        (ball,) = axis.lines
        x, y = ball.get_data()
        assert len(x) == 361
        assert x == pytest.approx(wide * np.cos(np.radians(np.arange(361))))
        assert y == pytest.approx(np.sin(np.radians(np.arange(361))))
        assert (ball.get_linewidth(), ball.get_zorder()) == (1.2, 1)
        (filled,) = axis.patches
        assert filled.get_xy()[:361] == pytest.approx(np.stack([x, y], axis=1))
        assert filled.get_zorder() == 0
        first, its_name, second, other_name = axis.texts
        assert [first.xy, second.xy] == end
        assert first.xyann == second.xyann == (0, 0)
        assert [first.arrow_patch.get_linewidth(), second.arrow_patch.get_linewidth()] == [2.2, 2.2]
        assert [its_name.get_text(), other_name.get_text()] == name
        # The names are a tenth of the reach beyond the ends.
        assert its_name.get_position() == pytest.approx((end[0][0] + 0.1 * reach, 0))
        assert other_name.get_position() == pytest.approx((0, -2 - 0.1 * reach))
        assert [its_name.get_color(), other_name.get_color()] == ["#c8503c", "#2f6f9f"]
        assert {its_name.get_ha(), its_name.get_va()} == {"center"}
        assert axis.get_xlim() == axis.get_ylim() == pytest.approx((-reach, reach))
        assert axis.get_aspect() == 1
        assert len(axis.get_xticks()) == len(axis.get_yticks()) == 0
        assert to_hex(axis.spines["left"].get_edgecolor()) == "#c9d3da"

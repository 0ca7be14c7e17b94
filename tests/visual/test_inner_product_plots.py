"""The paper's figure 1, drawn from our own numbers."""

from __future__ import annotations

import torch

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

"""Whitening, weighted differences and directions: what the paper says W means."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import (
    eigen_features,
    orthogonalising_matrix,
    summarise,
    weighted_ssd,
    whitening_matrix,
)


def correlated_features(channels=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(channels, channels, generator=generator).double()
    return torch.einsum(
        "cd,bdhw->bchw", mix, torch.randn(3, channels, 9, 13, generator=generator).double()
    )


def covariance(f):
    return torch.cov(f.movedim(1, 0).flatten(1))


@pytest.mark.parametrize("form", ["factor", "zca"])
def test_the_inverse_covariance_whitens_equations_10_and_11(form):
    f = correlated_features()
    product = elliptical_from_matrix(whitening_matrix(f, floor=1e-12), form)
    g, _ = product(f, f)
    torch.testing.assert_close(covariance(g), torch.eye(5).double(), atol=1e-6, rtol=1e-6)


def test_zca_turns_nothing():
    """Of all whitenings ZCA stays nearest to the features: its cross-covariance is symmetric."""
    f = correlated_features()
    product = elliptical_from_matrix(whitening_matrix(f), "zca")
    g, _ = product(f, f)
    cross = torch.einsum("bchw,bdhw->cd", g - g.mean((0, 2, 3), True), f - f.mean((0, 2, 3), True))
    torch.testing.assert_close(cross, cross.mT)


def test_channels_without_variance_do_not_break_whitening():
    f = correlated_features()
    f[:, 2] = 1.0
    assert torch.isfinite(whitening_matrix(f)).all()
    with pytest.raises(ArgumentError, match="do not vary"):
        whitening_matrix(torch.ones(1, 3, 4, 5))


def test_weighted_squared_difference_expands_into_the_cost_equations_12_to_14(moved):
    f1, f2 = correlated_features(), correlated_features(seed=1)
    product = moved("elliptical", 5)
    W = product.matrix()

    def cost(a, b):
        g1, g2 = product(a, b)
        return (g1 * g2).sum(1)

    expanded = cost(f2, f2) + cost(f1, f1) - 2 * cost(f1, f2)
    torch.testing.assert_close(weighted_ssd(f1, f2, W), expanded)
    by_hand = torch.einsum("bchw,cd,bdhw->bhw", f2 - f1, W, f2 - f1)
    torch.testing.assert_close(weighted_ssd(f1, f2, W), by_hand)
    assert (weighted_ssd(f1, f2, W) >= 0).all()


def test_eigen_features_are_projections_on_the_extreme_directions():
    W = torch.diag(torch.tensor([2.0, 0.5, 7.0]))
    f = torch.randn(2, 3, 4, 5)
    most, least = eigen_features(f, W, count=2)
    torch.testing.assert_close(most.abs(), f[:, [2, 0]].abs())
    torch.testing.assert_close(least.abs(), f[:, [1, 0]].abs())
    with pytest.raises(ArgumentError, match="count must lie in 1 … 3, got 4"):
        eigen_features(f, W, count=4)


def test_summary_of_a_known_matrix():
    angle = torch.tensor(0.3).double()
    P = torch.eye(3).double()
    P[:2, :2] = torch.stack(
        [torch.stack([angle.cos(), angle.sin()]), torch.stack([-angle.sin(), angle.cos()])]
    )
    W = P.mT @ torch.diag(torch.tensor([4.0, 1.0, 0.5]).double()) @ P
    summary = summarise(W, P)
    torch.testing.assert_close(summary.eigenvalues, torch.tensor([0.5, 1.0, 4.0]).double())
    torch.testing.assert_close(summary.angles, torch.tensor([0.0, 0.3, 0.3]).double())
    assert summary.condition == pytest.approx(8)
    assert summary.distance == pytest.approx(((9 + 0.25) / 3) ** 0.5)
    assert summarise(torch.eye(4), torch.eye(4)).distance == 0


@pytest.mark.parametrize("channels", [2, 3, 64])
def test_two_vectors_are_made_orthogonal_and_keep_their_length_figure_1(channels):
    a, b, other = torch.randn(3, channels, generator=torch.Generator().manual_seed(0)).double()
    W = elliptical_from_matrix(orthogonalising_matrix(a, b)).matrix().detach()
    zero = torch.tensor(0.0).double()
    torch.testing.assert_close(a @ W @ b, zero)
    torch.testing.assert_close(a @ W @ a, a @ a)
    torch.testing.assert_close(b @ W @ b, b @ b)
    across = (
        other - torch.stack([a, b], 1) @ torch.linalg.lstsq(torch.stack([a, b], 1), other).solution
    )
    torch.testing.assert_close(W @ across, across)


def test_parallel_vectors_cannot_be_parted():
    with pytest.raises(ArgumentError, match="parallel"):
        orthogonalising_matrix(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]))

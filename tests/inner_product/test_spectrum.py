"""Eigenvalues from free reals: golden values, laws, and digits where Eq. (9) has none."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lcv.errors import ArgumentError
from lcv.inner_product.spectrum import eigenvalues, reals_from_eigenvalues


def exact(t: float) -> float:
    """Eq. (9) through complementary angles, by the standard library, without cancellation."""
    return math.atan2(1, -t) / math.atan2(1, t)


@pytest.mark.parametrize(
    ("t", "lam"),
    [(1.0, 3.0), (-1.0, 1 / 3), (1 / math.sqrt(3), 2.0), (100.0, 313.1697), (0.0, 1.0)],
)
def test_golden_values(t, lam):
    assert eigenvalues(torch.tensor([t], dtype=torch.float64)).item() == pytest.approx(
        lam, rel=1e-6
    )


def test_zero_gives_one_to_the_last_bit():
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(eigenvalues(torch.zeros(5, dtype=dtype)), torch.ones(5, dtype=dtype))


def test_it_is_equation_9():
    t = torch.linspace(-20, 20, 101, dtype=torch.float64)
    paper = (math.pi + 2 * torch.arctan(t)) / (math.pi - 2 * torch.arctan(t))
    torch.testing.assert_close(eigenvalues(t), paper)


@pytest.mark.parametrize("t", [1e4, 1e6, 1e8, -1e4, -1e6, -1e8])
def test_float32_keeps_its_digits_at_the_ends(t):
    lam = eigenvalues(torch.tensor([t], dtype=torch.float32)).item()
    assert lam == pytest.approx(exact(t), rel=5e-7)


@given(st.floats(-1e12, 1e12))
def test_opposite_reals_give_reciprocals(t):
    pair = eigenvalues(torch.tensor([t, -t], dtype=torch.float64))
    assert (pair > 0).all()
    assert pair.prod().item() == pytest.approx(1, rel=1e-12)


@given(st.floats(-1e8, 1e8))
def test_reals_come_back(t):
    real = torch.tensor([t], dtype=torch.float64)
    back = reals_from_eigenvalues(eigenvalues(real))
    assert back.item() == pytest.approx(t, rel=1e-9, abs=1e-12)


def test_strictly_increasing():
    assert (eigenvalues(torch.linspace(-1e3, 1e3, 4001, dtype=torch.float64)).diff() > 0).all()


def test_slope_at_the_start():
    t = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    eigenvalues(t).backward()
    assert t.grad.item() == pytest.approx(4 / math.pi)


def test_gradients():
    t = torch.tensor([-30.0, -1.0, 0.0, 0.3, 8.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(eigenvalues, t)
    lam = torch.tensor([0.01, 0.5, 1.7, 30.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(reals_from_eigenvalues, lam)


def test_an_eigenvalue_that_is_not_positive_is_refused():
    with pytest.raises(ArgumentError, match=r"must be positive, the smallest is -2\.000e\+00"):
        reals_from_eigenvalues(torch.tensor([1.0, -2.0]))

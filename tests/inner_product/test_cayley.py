"""The Cayley map: Theorems 1 and 2, and the numbers of a case small enough for paper."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.inner_product.cayley import (
    cayley,
    free_entries,
    inverse_cayley,
    skew_from_upper,
    upper_from_skew,
)

CHANNELS = (1, 2, 3, 64, 256)


def random_skew(channels: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    upper = torch.randn(free_entries(channels), dtype=torch.float64, generator=generator)
    return skew_from_upper(scale * upper, channels)


def test_a_rotation_by_hand():
    a = 0.7  # the authors' raw_P[0, 1]; above the diagonal our S is −a/2
    s = a / 2
    P = cayley(torch.tensor([[0.0, -s], [s, 0.0]], dtype=torch.float64))
    cos, sin = (1 - s**2) / (1 + s**2), 2 * s / (1 + s**2)
    torch.testing.assert_close(P, torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64))
    assert round(P[0, 0].item(), 4) == 0.7817
    assert round(P[0, 1].item(), 4) == 0.6236


@pytest.mark.parametrize("channels", CHANNELS)
def test_no_skew_is_no_rotation_to_the_last_bit(channels):
    S = skew_from_upper(torch.zeros(free_entries(channels)), channels)
    assert torch.equal(cayley(S), torch.eye(channels))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_image_is_a_rotation_without_eigenvalue_minus_one(channels, scale):
    P = cayley(random_skew(channels, scale))
    eye = torch.eye(channels, dtype=P.dtype)
    torch.testing.assert_close(P.mT @ P, eye)
    torch.testing.assert_close(torch.linalg.det(P), torch.tensor(1.0, dtype=P.dtype))
    smallest = torch.linalg.svdvals(eye + P).min()
    assert smallest > 0


@pytest.mark.parametrize("channels", CHANNELS)
def test_theorem_1_from_skew_to_rotation_and_back(channels):
    S = random_skew(channels)
    torch.testing.assert_close(inverse_cayley(cayley(S)), S, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("channels", CHANNELS)
def test_theorem_1_from_rotation_to_skew_and_back(channels):
    # Rotations that do not come from the map: products of plane turns by less than half a circle.
    P = torch.linalg.matrix_exp(0.5 * random_skew(channels, seed=1) / channels**0.5)
    torch.testing.assert_close(cayley(inverse_cayley(P)), P)
    S = inverse_cayley(P)
    assert torch.equal(S, -S.mT)


@pytest.mark.parametrize("channels", CHANNELS)
def test_theorem_2_a_path_within_the_rotations_joins_the_identity(channels):
    S = random_skew(channels)
    eye = torch.eye(channels, dtype=S.dtype)
    assert torch.equal(cayley(0 * S), eye)
    previous = eye
    for s in torch.linspace(0, 1, 9, dtype=S.dtype)[1:]:
        P = cayley(s * S)
        torch.testing.assert_close(P.mT @ P, eye)
        torch.testing.assert_close(torch.linalg.det(P), torch.tensor(1.0, dtype=P.dtype))
        assert torch.linalg.svdvals(eye + P).min() > 0
        if channels > 1:
            assert not torch.equal(P, previous)
        previous = P
    torch.testing.assert_close(previous, cayley(S))


def test_the_transpose_belongs_to_minus_s():
    S = random_skew(7)
    torch.testing.assert_close(cayley(-S), cayley(S).mT)


def test_upper_entries_are_row_by_row_and_come_back():
    upper = torch.tensor([1.0, 2.0, 3.0])
    S = skew_from_upper(upper, 3)
    assert torch.equal(S, torch.tensor([[0.0, 1, 2], [-1, 0, 3], [-2, -3, 0]]))
    assert torch.equal(upper_from_skew(S), upper)


def test_a_wrong_number_of_entries_is_refused_with_the_right_one():
    with pytest.raises(ArgumentError, match=r"3 channels has 3 free entries.*shape \(4,\)"):
        skew_from_upper(torch.zeros(4), 3)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_gradients(channels):
    upper = torch.randn(free_entries(channels), dtype=torch.float64, requires_grad=True)
    if channels > 1:
        assert torch.autograd.gradcheck(lambda u: cayley(skew_from_upper(u, channels)), upper)
    P = cayley(random_skew(channels)).requires_grad_()
    assert torch.autograd.gradcheck(inverse_cayley, P)

"""From any W to parameters and back, and the authors' checkpoints."""

from __future__ import annotations

import itertools
import zlib
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product import Elliptical
from lcv.inner_product.convert import (
    check_positive_definite,
    choose_row_signs,
    elliptical_from_matrix,
    from_authors,
    parameters_from_matrix,
    read_authors,
    to_authors,
)
from testing.shared import shared

CHANNELS = (1, 2, 3, 64, 256)


def random_orthogonal(channels: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(channels, channels, generator=generator).double())[0]


def matrix_with(V: torch.Tensor, condition: float, seed: int = 0) -> torch.Tensor:
    """A symmetric W with eigenvectors in the columns of V and eigenvalues around 1."""
    generator = torch.Generator().manual_seed(seed)
    exponent = torch.rand(len(V), generator=generator).double() - 0.5
    if len(V) > 1:
        exponent = (exponent - exponent.min()) / (exponent.max() - exponent.min()) - 0.5
    W = V @ torch.diag(condition**exponent) @ V.mT
    return (W + W.mT) / 2


EIGENVECTORS = {
    "random": random_orthogonal,
    "minus identity": lambda c: -torch.eye(c).double(),
    "a reflection": lambda c: torch.diag(torch.tensor([-1.0] + [1.0] * (c - 1))).double(),
    "a half turn": lambda c: torch.diag(torch.tensor([(-1.0) ** i for i in range(c)])).double(),
    "a permutation": lambda c: torch.eye(c).double().roll(1, 0),
    "a random reflection": lambda c: (
        random_orthogonal(c, 1)
        @ torch.diag(torch.tensor([-1.0] + [1.0] * (c - 1)).double())
        @ random_orthogonal(c, 1).mT
    ),
}


@pytest.mark.parametrize(
    ("channels", "condition"),
    [
        *itertools.product(CHANNELS[:-1], [1.0, 10.0, 1e4]),
        (CHANNELS[-1], 1e4),
    ],  # large ones are slow
)
@pytest.mark.parametrize("vectors", EIGENVECTORS)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_every_positive_definite_w_has_parameters(channels, vectors, condition, dtype, bound):
    W = matrix_with(EIGENVECTORS[vectors](channels), condition).to(dtype)
    back = elliptical_from_matrix(W).matrix().detach()
    assert back.dtype == dtype
    assert (back - W).norm() / W.norm() < bound
    if dtype == torch.float64:  # also where W is small: every eigenvalue keeps its digits
        lam = torch.linalg.eigvalsh(W)
        assert ((torch.linalg.eigvalsh(back) - lam) / lam).abs().max() < bound


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("vectors", EIGENVECTORS)
def test_row_signs_keep_every_pivot_at_least_one(channels, vectors):
    P = EIGENVECTORS[vectors](channels)
    signs = choose_row_signs(P)
    assert torch.equal(signs.abs(), torch.ones(channels).double())
    shifted = torch.eye(channels).double() + signs[:, None] * P
    for k in range(
        1, channels + 1, max(1, channels // 8)
    ):  # det of leading block = pivots' product
        assert torch.linalg.det(shifted[:k, :k]) > 1 - 1e-9
    torch.testing.assert_close(torch.linalg.det(signs[:, None] * P), torch.tensor(1.0).double())


def test_minus_identity_becomes_identity():
    assert torch.equal(choose_row_signs(-torch.eye(3)), -torch.ones(3).double())


def test_the_form_is_handed_on():
    assert elliptical_from_matrix(torch.eye(3), "factor").form == "factor"


def test_what_is_not_positive_definite_is_refused_with_its_smallest_eigenvalue():
    with pytest.raises(WeightsError, match=r"layer\.W: .* smallest eigenvalue is -5\.000e-01"):
        check_positive_definite(torch.diag(torch.tensor([1.0, -0.5, 2.0])), "layer.W")
    with pytest.raises(WeightsError, match=r"smallest eigenvalue is 0\.000e\+00"):
        parameters_from_matrix(torch.diag(torch.tensor([1.0, 0.0])))


def test_what_is_not_symmetric_is_refused_with_its_skewness():
    with pytest.raises(WeightsError, match=r"not symmetric, W − Wᵀ reaches 3\.000e\+00"):
        parameters_from_matrix(torch.tensor([[5.0, 3.0], [0.0, 5.0]]))


def test_nan_and_odd_shapes_are_refused():
    with pytest.raises(WeightsError, match="W: 1 of 4 entries are NaN or infinite"):
        parameters_from_matrix(torch.tensor([[1.0, 0.0], [0.0, torch.nan]]))
    with pytest.raises(WeightsError, match=r"square matrix, got shape \(2, 3\)"):
        parameters_from_matrix(torch.zeros(2, 3))


def test_rounding_in_the_matrix_s_own_precision_is_not_asymmetry():
    W = matrix_with(random_orthogonal(64), 1e3).float()
    W[3, 5] += 2 * torch.finfo(torch.float32).eps * W.abs().max()
    parameters_from_matrix(W)


def seeded(name: str, shape: tuple[int, ...], scale: float) -> torch.Tensor:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy((rng.standard_normal(shape) * scale).astype(np.float32))


def authors_matrix(raw_P: torch.Tensor, raw_D: torch.Tensor) -> torch.Tensor:
    """W as the authors' description has it: their sign, their triangle, an explicit inverse."""
    U = torch.triu(raw_P)
    S = (U - U.mT) / 2
    eye = torch.eye(len(raw_D), dtype=raw_P.dtype)
    P = (eye + S) @ torch.linalg.inv(eye - S)
    tau = 2 / torch.pi * torch.atan(raw_D)
    return P.mT @ torch.diag((1 + tau) / (1 - tau)) @ P


@pytest.mark.parametrize("channels", CHANNELS)
def test_authors_parameters_give_the_authors_matrix(channels):
    raw_P, raw_D = torch.randn(channels, channels).double(), torch.randn(channels).double()
    product = Elliptical(channels).double()
    product.S_upper.data, product.t.data = from_authors(raw_P, raw_D)
    torch.testing.assert_close(product.matrix(), authors_matrix(raw_P, raw_D))


@pytest.mark.parametrize(
    "name", ["lcv-raft-sintel__rubberwhale1__12.npz", "lcv-raft-small__sintel_0010__8.npz"]
)
def test_the_matrix_that_the_authors_code_built(name):
    with np.load(shared("golden", name)) as golden:
        W = torch.from_numpy(golden["W"])
    c = len(W)
    product = Elliptical(c)
    state = {
        "corr_block.raw_P": seeded("raw_P", (c, c), 0.2),
        "corr_block.raw_D": seeded("raw_D", (c,), 0.1),
        "corr_block.eye": torch.full((c, c), torch.nan),  # a constant beside them, never read
    }
    product.S_upper.data, product.t.data = read_authors(state, prefix="corr_block.")
    assert (product.matrix() - W).abs().max() < 1e-5


@pytest.mark.parametrize("channels", CHANNELS)
def test_to_the_authors_and_back(channels, moved):
    product = moved("elliptical", channels)
    raw_P, raw_D = to_authors(product.S_upper, product.t)
    assert torch.equal(raw_P.diagonal(), torch.ones(channels).double())
    torch.testing.assert_close(authors_matrix(raw_P, raw_D), product.matrix())
    upper, t = from_authors(raw_P, raw_D)
    assert torch.equal(upper, product.S_upper)
    assert torch.equal(t, product.t)


def test_the_unread_half_of_raw_p_may_hold_anything():
    raw_P, raw_D = torch.eye(3), torch.zeros(3)
    raw_P[2, 0], raw_P[1, 1] = torch.nan, 9.0
    upper, _ = from_authors(raw_P, raw_D)
    assert torch.equal(upper, torch.zeros(3))


def test_damaged_authors_parameters_are_refused_by_name():
    with pytest.raises(WeightsError, match=r"corr_block\.raw_D holds NaN"):
        from_authors(torch.eye(2), torch.tensor([0.0, torch.nan]), name="corr_block.")
    with pytest.raises(WeightsError, match=r"got \(3, 3\) and \(2,\)"):
        from_authors(torch.eye(3), torch.zeros(2))
    with pytest.raises(ArgumentError, match=r"no corr_block\.raw_P and no corr_block\.raw_D"):
        read_authors({"fnet.conv1.weight": torch.zeros(1)}, prefix="corr_block.")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("roundings", "refused"), [(80, False), (120, True)])
def test_w_may_be_asymmetric_by_a_hundred_roundings(dtype, roundings, refused):
    W = torch.diag(torch.tensor([1.0, 4.0], dtype=dtype))
    W[0, 1] = roundings * torch.finfo(dtype).eps * 4
    with pytest.raises(WeightsError, match="not symmetric") if refused else nullcontext():
        check_positive_definite(W)

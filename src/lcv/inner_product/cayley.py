"""Rotations from free numbers: the Cayley map S → P, Eq. (7) and (8), and its inverse.

    P = (I − S)(I + S)⁻¹,    Sᵀ = −S                                            Eq. (8)

S is skew-symmetric, so its free numbers are the c(c−1)/2 entries above the diagonal. The image is
SO*(c), Eq. (7): the rotations without eigenvalue −1. For real skew S the matrix I + S has the
eigenvalues 1 ± iμ and is never singular.

Sign: this is the paper's S. The authors' code uses (I + S′)(I − S′)⁻¹, that is S′ = −S; see
`convert`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.errors import ArgumentError
from lcv.inner_product.precision import full_precision


def free_entries(channels: int) -> int:
    """How many numbers a skew matrix of that size is made of: c(c−1)/2."""
    return channels * (channels - 1) // 2


def skew_from_upper(upper: Tensor, channels: int) -> Tensor:
    """The skew matrix S with the given strictly upper entries, row by row.

    upper: (c(c−1)/2,) → (c, c)
    Facts: Sᵀ = −S exactly; inverse in `upper_from_skew`.
    """
    if upper.shape != (free_entries(channels),):
        raise ArgumentError(
            f"skew_from_upper: a skew matrix of {channels} channels has "
            f"{free_entries(channels)} free entries, but `upper` has shape {tuple(upper.shape)}"
        )
    rows, columns = torch.triu_indices(channels, channels, offset=1, device=upper.device)
    half = upper.new_zeros(channels, channels).index_put((rows, columns), upper)
    return half - half.mT


def upper_from_skew(S: Tensor) -> Tensor:
    """The strictly upper entries of S, row by row. (c, c) → (c(c−1)/2,)"""
    rows, columns = torch.triu_indices(len(S), len(S), offset=1, device=S.device)
    return S[rows, columns]


@full_precision
def cayley(S: Tensor) -> Tensor:
    """The rotation of a skew matrix, Eq. (8), solved and never inverted.

        P = (I − S)(I + S)⁻¹ = (I + S)⁻¹(I − S),    since the two factors commute

    S: (c, c) skew → (c, c)
    Facts: PᵀP = I; det P = 1; S = 0 gives I to the last bit; S → −S gives Pᵀ.
    """
    eye = torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)
    return _solve(eye + S, eye - S)


@full_precision
def inverse_cayley(P: Tensor) -> Tensor:
    """The skew matrix of a rotation in SO*, Theorem 1.

        S = (I + P)⁻¹(I − P)

    P: (c, c) orthogonal without eigenvalue −1 → (c, c) skew
    Facts: inverse of `cayley` both ways; explodes as an eigenvalue of P nears −1, where
    `convert.choose_row_signs` helps if only PᵀΛP matters.
    """
    eye = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    S = _solve(eye + P, eye - P)
    return (S - S.mT) / 2


def _solve(A: Tensor, B: Tensor) -> Tensor:
    """A⁻¹B by LU decomposition. A is known to be regular, so nothing is read back to check it:
    reading the verdict would make the host wait for the device once per pair."""
    solution: Tensor = torch.linalg.solve_ex(A, B, check_errors=False)[0]
    return solution

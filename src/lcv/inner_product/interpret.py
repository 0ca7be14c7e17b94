"""What W means: whitening, weighted squared differences, and the directions it stresses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.errors import ArgumentError
from lcv.inner_product.base import transform


@dataclass(frozen=True)
class Summary:
    """A learned W in numbers.

    eigenvalues: (c,) ascending;  condition: largest over smallest;  distance: ‖W − I‖ / ‖I‖ in the
    Frobenius norm;  angles: (c,) of the eigenvalues of P on the unit circle, in radians, ascending
    """

    eigenvalues: Tensor
    condition: float
    distance: float
    angles: Tensor


def summarise(W: Tensor, P: Tensor) -> Summary:
    """Spectrum, condition, distance from I, and the angles by which P turns. W, P: (c, c)"""
    W, P = W.detach().double(), P.detach().double()
    lam = torch.linalg.eigvalsh((W + W.mT) / 2)
    eye = torch.eye(len(W), dtype=W.dtype, device=W.device)
    return Summary(
        eigenvalues=lam,
        condition=float(lam[-1] / lam[0]),
        distance=float((W - eye).norm() / eye.norm()),
        angles=torch.linalg.eigvals(P).angle().abs().sort().values,
    )


def eigen_features(f: Tensor, W: Tensor, count: int = 1) -> tuple[Tensor, Tensor]:
    """Features along the directions that W weighs most and least.

    f: (b, c, h, w), W: (c, c) symmetric → most, least: (b, count, h, w); the weightiest first,
    and the lightest first
    """
    if not 1 <= count <= len(W):
        raise ArgumentError(f"eigen_features: count must lie in 1 … {len(W)}, got {count}")
    V = torch.linalg.eigh(W.detach().double()).eigenvectors.to(f.dtype)
    along = transform(f, V.mT)  # (b, c, h, w), eigenvalues ascending
    return along[:, -count:].flip(1), along[:, :count]


def whitening_matrix(f: Tensor, floor: float = 1e-6) -> Tensor:
    """W = Σ⁻¹ of a set of features: the inner product of whitened vectors, Eq. (10), (11).

        f1ᵀ Σ⁻¹ f2 = (Q f1)·(Q f2) = (R f1)·(R f2)

    with Q = Λ^½P and R = PᵀΛ^½P of Σ⁻¹, so that Q f and R f have the unit matrix for covariance.

    f: (b, c, h, w) → (c, c); `floor` times the mean variance is added to Σ's diagonal, so that
    channels without variance do not make it singular
    """
    vectors = f.detach().double().movedim(1, 0).flatten(1)  # (c, b·h·w)
    sigma = torch.cov(vectors).view(len(vectors), len(vectors))
    ridge = floor * sigma.diagonal().mean()
    if not bool(ridge > 0):
        raise ArgumentError(
            "whitening_matrix: the features do not vary, so nothing can be whitened"
        )
    eye = torch.eye(len(sigma), dtype=sigma.dtype, device=sigma.device)
    W: Tensor = torch.linalg.solve(sigma + ridge * eye, eye)
    return ((W + W.mT) / 2).to(f.dtype)


def weighted_ssd(f1: Tensor, f2: Tensor, W: Tensor) -> Tensor:
    """The squared difference weighed by W, Eq. (12).

        (f2 − f1)ᵀ W (f2 − f1) = f2ᵀWf2 + f1ᵀWf1 − 2 f1ᵀWf2              Eq. (13), (14)

    f1, f2: (b, c, h, w), W: (c, c) symmetric → (b, h, w)
    Fact: where both terms f ᵀWf are constant (features of unit length in W), the smallest
    difference and the largest cost f1ᵀWf2 are at the same place.
    """
    difference = f2 - f1
    return (difference * transform(difference, W)).sum(1)


def orthogonalising_matrix(a: Tensor, b: Tensor) -> Tensor:
    """A symmetric positive definite W for which aᵀWb = 0 and both keep their length, figure 1.

        W = B⁻ᵀ diag(|a|², |b|²) B⁻¹ on the plane of a and b, B = (a b);    I across it

    a, b: (c,), not parallel → (c, c)
    """
    B = torch.stack([a, b], dim=1)  # (c, 2)
    onto: Tensor = torch.linalg.pinv(B)  # (2, c): the coordinates of a vector's part in the plane
    if torch.linalg.matrix_rank(B) < 2:
        raise ArgumentError("orthogonalising_matrix: a and b are parallel, no W parts them")
    lengths = torch.diag(B.square().sum(0))
    across = torch.eye(len(a), dtype=a.dtype, device=a.device) - B @ onto
    return onto.mT @ lengths @ onto + across

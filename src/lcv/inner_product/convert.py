"""To and from a given W, and to and from the authors' parameters.

A symmetric positive definite W = VΛVᵀ gives P = Vᵀ, but P is defined only up to the sign of each
row, and a raw Vᵀ may be a reflection or have an eigenvalue at −1, for which no S exists. So the
signs are chosen such that one always does.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product.cayley import inverse_cayley, skew_from_upper, upper_from_skew
from lcv.inner_product.spectrum import reals_from_eigenvalues
from lcv.inner_product.variants import Elliptical

AUTHORS_KEYS = ("raw_P", "raw_D")
AUTHORS_UNREAD = "eye"


def check_positive_definite(W: Tensor, name: str = "W") -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors (columns) of W in float64; refuses any other W."""
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise WeightsError(f"{name}: W must be a square matrix, got shape {tuple(W.shape)}")
    bad = int((~torch.isfinite(W)).sum())
    if bad:
        raise WeightsError(f"{name}: {bad} of {W.numel()} entries are NaN or infinite")
    exact = W.double()
    skewness = (exact - exact.mT).abs().max()
    # A W computed by two products is symmetric only to rounding in its own precision.
    rounding = 100 * torch.finfo(W.dtype).eps * exact.abs().max()
    if skewness > rounding:
        raise WeightsError(
            f"{name}: W is not symmetric, W − Wᵀ reaches {skewness:.3e}. Only symmetric positive "
            f"definite matrices have elliptical parameters; keep this one as a `free` product."
        )
    lam, V = torch.linalg.eigh((exact + exact.mT) / 2)
    if lam[0] <= 0:
        raise WeightsError(
            f"{name}: W is not positive definite, its smallest eigenvalue is {lam[0]:.3e}. "
            f"Add a small multiple of the identity, or keep it as a `free` product."
        )
    return lam, V


def choose_row_signs(P: Tensor) -> Tensor:
    """Signs e, (c,), such that diag(e)·P is in SO*: a rotation with a moderate Cayley matrix.

    Gaussian elimination without pivoting on I + diag(e)P. Row k enters as δ_k + e_k p_k, and the
    rows above only change p_k, so the pivot is 1 + e_k s_k with s_k independent of e_k. With
    e_k = sign(s_k) every pivot is at least 1 and I + diag(e)P is regular.

    P: (c, c) orthogonal → (c,) of ±1
    Facts: PᵀΛP does not change; P = −I gets −1 everywhere.
    """
    rest = P.double().clone()
    signs = torch.ones(len(P), dtype=torch.float64, device=P.device)
    for k in range(len(P)):
        signs[k] = -1.0 if rest[k, k] < 0 else 1.0
        pivot_row = signs[k] * rest[k]
        pivot_row[k] += 1
        rest[k + 1 :] -= torch.outer(rest[k + 1 :, k] / pivot_row[k], pivot_row)
    return signs


def parameters_from_matrix(W: Tensor, name: str = "W") -> tuple[Tensor, Tensor]:
    """(S_upper, t) of an `Elliptical` product whose matrix is W; worked out in float64.

    W: (c, c) symmetric positive definite → (c(c−1)/2,), (c,) in W's dtype
    """
    lam, V = check_positive_definite(W, name)
    P = V.mT
    P = choose_row_signs(P)[:, None] * P
    upper = upper_from_skew(inverse_cayley(P))
    return upper.to(W.dtype), reals_from_eigenvalues(lam).to(W.dtype)


def elliptical_from_matrix(W: Tensor, form: str = "left") -> Elliptical:
    """An `Elliptical` product with the given matrix."""
    upper, t = parameters_from_matrix(W)
    product = Elliptical(len(W), form).to(device=W.device, dtype=W.dtype)
    with torch.no_grad():
        product.S_upper.copy_(upper)
        product.t.copy_(t)
    return product


def from_authors(raw_P: Tensor, raw_D: Tensor, name: str = "") -> tuple[Tensor, Tensor]:
    """(S_upper, t) of the authors' `raw_P` (c, c) and `raw_D` (c,).

    Their code builds S′ = (U − Uᵀ)/2 from the upper triangle U of raw_P and takes
    (I + S′)(I − S′)⁻¹, so above the diagonal S = −S′ = −raw_P/2; diagonal and lower half of raw_P
    are never read. λ is Eq. (9) with t = raw_D.
    """
    c = len(raw_D)
    if raw_D.ndim != 1 or raw_P.shape != (c, c):
        raise WeightsError(
            f"{name}raw_P must be (c, c) and raw_D (c,), got {tuple(raw_P.shape)} and "
            f"{tuple(raw_D.shape)}"
        )
    upper = -upper_from_skew(raw_P) / 2
    for key, value in (("raw_P", upper), ("raw_D", raw_D)):
        if not bool(torch.isfinite(value).all()):
            raise WeightsError(f"{name}{key} holds NaN or infinite numbers")
    return upper, raw_D.clone()


def to_authors(S_upper: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """The authors' (raw_P, raw_D) of our (S_upper, t): raw_P is −2S above the diagonal, 1 on it."""
    S = skew_from_upper(S_upper, len(t))
    raw_P = torch.triu(-2 * S, diagonal=1) + torch.eye(len(t), dtype=S.dtype, device=S.device)
    return raw_P, t.clone()


def read_authors(state: Mapping[str, Tensor], prefix: str = "") -> tuple[Tensor, Tensor]:
    """(S_upper, t) from a checkpoint's entries `prefix` + raw_P and raw_D.

    ptlflow's prefix is `corr_block.`; the entry `eye` beside them is a constant and is not read.
    """
    missing = [prefix + key for key in AUTHORS_KEYS if prefix + key not in state]
    if missing:
        raise ArgumentError(
            f"read_authors: no {' and no '.join(missing)} in this checkpoint; "
            f"it has {sorted(state)[:8]} …"
        )
    return from_authors(state[prefix + "raw_P"], state[prefix + "raw_D"], name=prefix)

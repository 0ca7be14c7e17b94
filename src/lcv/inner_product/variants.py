"""Six of the seven inner products: what is free in W, and nothing else (the seventh: `riemannian`).

| kind       | W              | free numbers   | always positive definite |
|------------|----------------|----------------|--------------------------|
| Euclidean  | I              | none           | yes                      |
| Elliptical | PᵀΛP, Eq. (3)  | c(c−1)/2 + c   | yes                      |
| Diagonal   | Λ              | c              | yes                      |
| Rotation   | PᵀP            | c(c−1)/2       | yes: it is I             |
| Free       | any            | c²             | no, nor symmetric        |
| Gram       | RᵀR            | c²             | only while R is regular  |
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from lcv.inner_product.base import InnerProduct, gram
from lcv.inner_product.cayley import cayley, free_entries, skew_from_upper
from lcv.inner_product.precision import at_least_float32
from lcv.inner_product.spectrum import eigenvalues


class Euclidean(InnerProduct):
    """W = I: the vanilla cost volume, Eq. (1). Features pass through untouched."""

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        # Without a parameter, something must remember where and in what precision we are.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def matrix(self) -> Tensor:
        like = at_least_float32(self.get_buffer("like"))
        return torch.eye(self.channels, dtype=like.dtype, device=like.device)

    factor_matrix = matrix
    zca_matrix = matrix

    def left(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        return f1, f2

    factor = left
    zca = left


class Spectral(InnerProduct):
    """What is given by its axes and their weights: W = PᵀΛP, Q = Λ^½P, R = PᵀΛ^½P."""

    def rotation(self) -> Tensor:
        """P, (c, c) orthogonal."""
        raise NotImplementedError

    def eigenvalues(self) -> Tensor:
        """λ, (c,) positive."""
        raise NotImplementedError

    def matrix(self) -> Tensor:
        return gram(self.factor_matrix())

    def factor_matrix(self) -> Tensor:
        return self.eigenvalues().sqrt()[:, None] * self.rotation()

    def zca_matrix(self) -> Tensor:
        return gram(self.eigenvalues().sqrt().sqrt()[:, None] * self.rotation())


class Elliptical(Spectral):
    """W = PᵀΛP with P from the Cayley map and Λ from free reals: the paper's LCV, Eq. (3).

    S_upper: (c(c−1)/2,) strictly upper entries of S, Eq. (8), at 0
    t:       (c,) with λ = (π + 2 arctan t)/(π − 2 arctan t), Eq. (9), at 0
    Fact: where channels are summed the gradient with respect to S is zero as long as Λ is a
    multiple of I, since then PᵀΛP does not depend on P. S begins to move after t has.
    """

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.S_upper = nn.Parameter(torch.zeros(free_entries(channels)))
        self.t = nn.Parameter(torch.zeros(channels))

    def rotation(self) -> Tensor:
        return cayley(skew_from_upper(at_least_float32(self.S_upper), self.channels))

    def eigenvalues(self) -> Tensor:
        return eigenvalues(self.t)


class Diagonal(Spectral):
    """W = Λ: each channel weighed on its own; the ablation's "Λ only"."""

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.t = nn.Parameter(torch.zeros(channels))

    def rotation(self) -> Tensor:
        return torch.eye(self.channels, dtype=at_least_float32(self.t).dtype, device=self.t.device)

    def eigenvalues(self) -> Tensor:
        return eigenvalues(self.t)


class Rotation(Spectral):
    """W = PᵀP with P free: the ablation's "P only", computed and not short-cut.

    Since PᵀP = I for every P, this changes nothing wherever channels are summed: in RAFT and
    DDFlow it is the null control. It acts only through `factor` on channels kept apart (VCN).
    """

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.S_upper = nn.Parameter(torch.zeros(free_entries(channels)))

    def rotation(self) -> Tensor:
        return cayley(skew_from_upper(at_least_float32(self.S_upper), self.channels))

    def eigenvalues(self) -> Tensor:
        S = at_least_float32(self.S_upper)
        return torch.ones(self.channels, dtype=S.dtype, device=S.device)


class Free(InnerProduct):
    """Any W at all: the ablation's unconstrained matrix, neither symmetric nor positive.

    The product is f1ᵀ W f2 with frame 1 on the left; the orientation matters.
    """

    forms: ClassVar[tuple[str, ...]] = ("left",)
    why_not: ClassVar[str] = (
        "a free W need be neither symmetric nor positive, so no Q with QᵀQ = W exists in general. "
        "Use form='left', or 'gram' or 'elliptical' for a matrix that factors."
    )

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.W = nn.Parameter(torch.eye(channels))

    def matrix(self) -> Tensor:
        return at_least_float32(self.W)


class Gram(InnerProduct):
    """W = RᵀR: a 1×1 convolution R without bias on both features, started at the identity.

    Positive definite exactly while R is regular, which nothing guarantees in training.
    """

    forms: ClassVar[tuple[str, ...]] = ("left", "factor")
    why_not: ClassVar[str] = (
        "the symmetric root of RᵀR has no gradient where eigenvalues coincide, as all do at the "
        "start W = I. Use form='factor', which is the 1×1 convolution itself, or 'left'."
    )

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.R = nn.Parameter(torch.eye(channels))

    def matrix(self) -> Tensor:
        return gram(self.R)

    def factor_matrix(self) -> Tensor:
        return at_least_float32(self.R)

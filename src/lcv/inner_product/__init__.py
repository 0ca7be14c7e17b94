"""Layer 1a: the matrix W of F1ᵀ W F2, its parameters, its use on features. Imports torch only."""

from __future__ import annotations

from lcv.errors import ArgumentError
from lcv.inner_product.base import FORMS, InnerProduct
from lcv.inner_product.riemannian import Riemannian, StiefelSGD
from lcv.inner_product.variants import (
    Diagonal,
    Elliptical,
    Euclidean,
    Free,
    Gram,
    Rotation,
    Spectral,
)

INNER_PRODUCTS: dict[str, type[InnerProduct]] = {
    "euclidean": Euclidean,
    "elliptical": Elliptical,
    "diagonal": Diagonal,
    "rotation": Rotation,
    "free": Free,
    "gram": Gram,
    "riemannian": Riemannian,
}

__all__ = [
    "FORMS",
    "INNER_PRODUCTS",
    "Diagonal",
    "Elliptical",
    "Euclidean",
    "Free",
    "Gram",
    "InnerProduct",
    "Riemannian",
    "Rotation",
    "Spectral",
    "StiefelSGD",
    "make_inner_product",
]


def make_inner_product(name: str, channels: int, form: str = "left") -> InnerProduct:
    """An inner product by name, at W = I. Names: the keys of INNER_PRODUCTS."""
    if name not in INNER_PRODUCTS:
        raise ArgumentError(
            f"unknown inner product {name!r}; there are {', '.join(INNER_PRODUCTS)}"
        )
    return INNER_PRODUCTS[name](channels, form)

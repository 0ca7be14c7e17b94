"""Inner products moved away from the identity, for tests of what holds everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lcv.inner_product import InnerProduct, Riemannian, make_inner_product
from lcv.inner_product.riemannian import retract


@pytest.fixture
def moved() -> Callable[..., InnerProduct]:
    """moved(name, channels, form, scale, dtype): a product with random parameters."""

    def make(name, channels, form="left", scale=0.3, dtype=torch.float64, seed=0) -> InnerProduct:
        generator = torch.Generator().manual_seed(seed)
        product = make_inner_product(name, channels, form).to(dtype)
        with torch.no_grad():
            for parameter in product.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter += scale * noise.to(dtype)
            if isinstance(product, Riemannian):
                product.P.copy_(retract(product.P, torch.zeros_like(product.P)))
        return product

    return make

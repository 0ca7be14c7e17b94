"""A network made ready for tracing: W folded or fixed, costs read by the chosen operator."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from lcv.inner_product import Euclidean, InnerProduct
from lcv.inner_product.base import transform
from lcv.models.surgery import fold, set_inner_product
from lcv.models.types import FlowModel


class FixedProduct(nn.Module):
    """An inner product that learns no more: `g1, g2 = product(f1, f2)` by constant matrices.

    left: (c, c), applied to f1;  right: (c, c), applied to f2, or None where f2 stays as it is
    """

    left: Tensor
    right: Tensor | None

    def __init__(self, left: Tensor, right: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("left", left)
        self.register_buffer("right", right)

    def forward(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        return transform(f1, self.left), f2 if self.right is None else transform(f2, self.right)

    def factor_matrix(self) -> Tensor:
        """Q, where both features are multiplied by it, as in a network that LCV was attached to."""
        return self.left


class Core(nn.Module):
    """What is traced: image1, image2 (1, 3, h, w) RGB 0 … 255 → flow (1, 2, h, w).

    At sizes that the network takes as they are, its `encode` neither pads nor resizes.
    """

    def __init__(self, model: nn.Module, iters: int | None) -> None:
        super().__init__()
        self.model: Any = model
        self.iters = iters

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        features = self.model.encode(image1, "first"), self.model.encode(image2, "second")
        size = image1.shape[2], image1.shape[3]
        return self.model.match(*features, size=size, iters=self.iters).flow


def prepare(model: FlowModel, lookup: str) -> tuple[nn.Module, str]:
    """A float32 copy on the CPU, without gradients, its W folded where it can be, else constant;
    and in words where its W went."""
    twin: Any = model.core_for_export(lookup).to("cpu", torch.float32).eval()
    learned = {k: p for k, p in twin.inner_products.items() if not isinstance(p, Euclidean)}
    words = "none"
    if learned and twin.layer_before_w() is not None and all(map(_has_factor, learned.values())):
        twin = fold(twin)
        words = "folded into the encoder's last convolution"
    elif learned:
        for level, product in learned.items():
            set_inner_product(twin, level, fixed(product))
        names = [level for level in learned if level]
        words = f"constant matrices at levels {', '.join(names)}" if names else "a constant matrix"
    return twin.requires_grad_(False), words


def _has_factor(product: InnerProduct) -> bool:
    return "factor" in product.forms


@torch.no_grad()
def fixed(product: InnerProduct) -> FixedProduct:
    """The same inner product with its matrices worked out, in float64, and rounded once."""
    exact = copy.deepcopy(product).double()
    if product.form == "left":
        return FixedProduct(exact.matrix().mT.float().contiguous(), None)
    both = exact.factor_matrix() if product.form == "factor" else exact.zca_matrix()
    return FixedProduct(both.float(), both.float())

"""A network made ready for tracing: W folded or fixed, costs read by the chosen operator."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from lcv.cost_volume.allpairs import AllPairs
from lcv.cost_volume.ondemand import OnDemand
from lcv.export.lookup import lookup_like
from lcv.inner_product import Euclidean, InnerProduct
from lcv.inner_product.base import transform
from lcv.models.raft import RAFT
from lcv.models.surgery import fold


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


class Prepared(NamedTuple):
    """A copy of a network that computes the same flow, and in words where its W went."""

    model: nn.Module
    W: str


def prepare(model: nn.Module, lookup: str) -> Prepared:
    """A float32 copy on the CPU, without gradients, its W folded (RAFT) or constant (the others)."""
    twin = copy.deepcopy(model).to("cpu", torch.float32).eval()
    if isinstance(twin, RAFT):
        twin, words = _without_w(twin)
        twin.cost_volume = lookup_like(_all_pairs(twin), lookup)
    else:
        words = _fix_all(twin)
    return Prepared(twin.requires_grad_(False), words)


def _without_w(model: RAFT) -> tuple[RAFT, str]:
    product = model.inner_product
    if isinstance(product, Euclidean):
        return model, "none"
    if "factor" in product.forms:
        return cast(RAFT, fold(model)), "folded into the encoder's last convolution"
    model.inner_product = cast(InnerProduct, fixed(product))
    return model, "a constant matrix"


def _all_pairs(model: RAFT) -> AllPairs:
    """What the network's volume computes, whichever way it does so."""
    volume = cast("AllPairs | OnDemand", model.cost_volume)
    return AllPairs(levels=volume.levels, radius=volume.radius, scale=volume.scale)


def _fix_all(model: nn.Module) -> str:
    """Every level's W as a constant, in place."""
    products = cast(Any, model).inner_products
    learned = [level for level, each in products.items() if not isinstance(each, Euclidean)]
    for level in learned:
        products[level] = fixed(products[level])
    return f"constant matrices at levels {', '.join(learned)}" if learned else "none"


@torch.no_grad()
def fixed(product: InnerProduct) -> FixedProduct:
    """The same inner product with its matrices worked out, in float64, and rounded once."""
    exact = copy.deepcopy(product).double()
    if product.form == "left":
        return FixedProduct(exact.matrix().mT.float().contiguous(), None)
    both = exact.factor_matrix() if product.form == "factor" else exact.zca_matrix()
    return FixedProduct(both.float(), both.float())

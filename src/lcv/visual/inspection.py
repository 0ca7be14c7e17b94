"""What a network has learned in its W: numbers by level, and the features that W weighs.

Any network with `inner_products` (level → inner product) will do; nothing else is asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product import InnerProduct, Spectral
from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import Summary, summarise

# Channels of a direction that are named one by one; the whole direction is given too.
STRONGEST = 5


@dataclass(frozen=True)
class Level:
    """One W and what there is to say about it.

    W: (c, c) float64;  vectors: (c, c), the eigenvector of eigenvalues[k] in column k
    angles: whether `summary.angles` mean anything; a W that is not positive has no P
    pair: the two channels for the picture of figure 1
    """

    name: str
    W: Tensor
    summary: Summary
    vectors: Tensor
    angles: bool
    pair: tuple[int, int]
    notes: tuple[str, ...]

    @property
    def positive(self) -> bool:
        """Whether W is an inner product at all; a `free` or `gram` W need not be."""
        return bool(self.summary.eigenvalues[0] > 0)

    @property
    def is_identity(self) -> bool:
        return self.summary.distance == 0.0

    def as_dict(self, count: int = 3) -> dict[str, Any]:
        """All numbers, ready for JSON; the `count` most and least weighted directions."""
        lam = self.summary.eigenvalues
        i, j = self.pair
        plane = self.plane()
        cosine = plane[0, 1] / (plane[0, 0] * plane[1, 1]).abs().sqrt().clamp(min=1e-300)
        order = range(len(lam))
        return {
            "channels": len(lam),
            "is_identity": self.is_identity,
            "positive_definite": self.positive,
            "condition": self.summary.condition if self.positive else None,
            "distance_from_identity": self.summary.distance,
            "eigenvalues": lam.tolist(),
            "angles_degrees": self.summary.angles.rad2deg().tolist() if self.angles else None,
            "most_weighted": [self._direction(k) for k in list(order)[: -count - 1 : -1]],
            "least_weighted": [self._direction(k) for k in list(order)[:count]],
            "pair": {"channels": [i, j], "W": plane.tolist(), "cosine": float(cosine)},
            "notes": list(self.notes),
        }

    @property
    def has_ellipse(self) -> bool:
        """Whether xᵀWx = 1 is an ellipse on the plane of `pair`."""
        return len(self.W) > 1 and bool((torch.linalg.eigvalsh(self.plane()) > 0).all())

    def plane(self) -> Tensor:
        """W on the plane of the two channels of `pair`, (2, 2), its symmetric part."""
        index = torch.tensor(self.pair)
        block = self.W[index][:, index]
        return (block + block.mT) / 2

    def _direction(self, k: int) -> dict[str, Any]:
        direction = self.vectors[:, k]
        strongest = direction.abs().argsort(descending=True, stable=True)[:STRONGEST].tolist()
        return {
            "eigenvalue": float(self.summary.eigenvalues[k]),
            "strongest_channels": {str(c): float(direction[c]) for c in strongest},
            "direction": direction.tolist(),
        }


def inspect_model(model: nn.Module, channels: tuple[int, int] | None = None) -> dict[str, Level]:
    """Every W of a network, by level, in the network's own order (finest last).

    channels: the pair for figure 1; by default the two that W ties most to each other
    """
    products = getattr(model, "inner_products", None)
    if not products:
        name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
        raise ArgumentError(f"{name} has no W to inspect; give weights that were trained with one")
    return {
        name: inspect_product(product, name, channels)
        for name, product in cast(Mapping[str, InnerProduct], products).items()
    }


@torch.no_grad()
def inspect_product(
    product: InnerProduct, name: str = "", channels: tuple[int, int] | None = None
) -> Level:
    """One W. channels: as for `inspect_model`"""
    W = product.matrix().double().cpu()
    notes = []
    rotation = torch.eye(len(W), dtype=W.dtype)
    angles = True
    if isinstance(product, Spectral):
        rotation = product.rotation()
    elif not torch.equal(W, rotation):
        try:
            rotation = elliptical_from_matrix(W).rotation()
        except WeightsError:
            angles = False
            notes.append("W is not symmetric positive definite, so there is no P and no angle")
    if not torch.equal(W, W.mT):
        notes.append("W is not symmetric; eigenvalues are those of its symmetric part")
    summary = summarise(W, rotation.cpu())
    if summary.distance == 0:
        notes.append("W = I: all directions weigh the same, so none is the most or the least")
    vectors = torch.linalg.eigh((W + W.mT) / 2).eigenvectors
    # An eigenvector's sign is nobody's; ours has its strongest channel positive.
    strongest = vectors.abs().argmax(0, keepdim=True)
    vectors = vectors * vectors.gather(0, strongest).sign()
    pair = _tied_most(W) if channels is None else _checked(channels, len(W), name)
    return Level(name, W, summary, vectors, angles, pair, tuple(notes))


class _Enough(Exception):
    """All features have been seen; the rest of the network need not run."""


@torch.no_grad()
def features_of(model: nn.Module, image: Tensor) -> dict[str, Tensor]:
    """The features of a frame that meet each W, by level: (c, h', w').

    image: (1, 3, h, w) RGB, 0 … 255. The frame is matched with itself as far as the last W, so
    that no network must be told how to give up its features, and no volume larger than needed is
    built.
    """
    products = cast(Mapping[str, nn.Module], model.inner_products)
    seen: dict[str, Tensor] = {}

    def remember(name: str) -> Any:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen.setdefault(name, inputs[0][0].detach().float().cpu())
            if len(seen) == len(products):
                raise _Enough

        return hook

    hooks = [
        product.register_forward_pre_hook(remember(name)) for name, product in products.items()
    ]
    try:
        model(image, image)
    except _Enough:
        pass
    finally:
        for handle in hooks:
            handle.remove()
    return seen


def _tied_most(W: Tensor) -> tuple[int, int]:
    """The two channels with the largest |cos| under W; 0 and 1 where all are orthogonal."""
    if len(W) < 2:
        return 0, 0
    length = W.diagonal().abs().sqrt().clamp(min=1e-300)
    tie = ((W + W.mT) / 2 / length / length[:, None]).abs().fill_diagonal_(0).triu()
    best = int(tie.argmax())
    return (0, 1) if not tie.any() else (best // len(W), best % len(W))


def _checked(channels: tuple[int, int], count: int, name: str) -> tuple[int, int]:
    i, j = channels
    if i == j or not (0 <= i < count and 0 <= j < count):
        where = f" of level {name}" if name else ""
        raise ArgumentError(
            f"channels {i} and {j}: wanted two different channels{where} from 0 to {count - 1}"
        )
    return i, j

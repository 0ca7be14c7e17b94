"""What every network takes and returns: one protocol, one output, no base class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn


@dataclass(frozen=True)
class FlowOutput:
    """What a network returns, in training and in evaluation alike.

    flow:     (b, 2, h, w), pixels of the input; channel 0 = x to the right, 1 = y down
    flows:    all predictions at the input's size, finest (last) last; empty unless asked for
    low:      (b, 2, h', w') at the network's inner resolution and in its pixels, for a warm start
    backward: the same for the pair taken in reverse, where the network computes both at once
    entropy:  (b, 1, h', w') of the matching distribution, where the network has one
    extra:    what only this network's loss reads
    """

    flow: Tensor
    flows: tuple[Tensor, ...] = ()
    low: Tensor | None = None
    backward: FlowOutput | None = None
    entropy: Tensor | None = None
    extra: dict[str, Any] | None = None


@runtime_checkable
class FlowModel(Protocol):
    """A network: features → inner product → cost volume → head.

    `forward` is pad (or resize) → `encode` both → `match` → undo. `encode` and `match` work at
    multiples of `stride`, so that a stream encodes each frame once and a tracer sees no padding.
    """

    stride: int

    @property
    def inner_product(self) -> nn.Module:
        """The inner product of the finest cost volume."""

    @property
    def inner_products(self) -> Mapping[str, nn.Module]:
        """All of them, by level, finest last."""

    def encode(self, image: Tensor) -> Any: ...

    def match(self, features1: Any, features2: Any, **options: Any) -> FlowOutput: ...

    def __call__(self, image1: Tensor, image2: Tensor, **options: Any) -> FlowOutput: ...

"""How a foreign network is called: what it wants of its images, and where its flow is.

torchvision's and ptlflow's networks are known by their class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from lcv.errors import ArgumentError

FITS = ("pad", "resize")


@dataclass(frozen=True)
class Convention:
    """How a network is called. Every field is an argument of `wrap`.

    range:    what black and white are to it: (0, 255), (0, 1), (-1, 1), …
    bgr:      whether it wants blue first
    multiple: of which the images' sides must be; others are brought to it by `fit`
    fit:      "pad" (borders repeated) or "resize"
    least:    the least side it takes
    stacked:  the entry of a dictionary under which it takes both images as (b, 2, 3, h, w), as
              ptlflow's do; None for two arguments
    flow:     the key or attribute of the flow (or list of flows) in what it returns; None if that is
              the flow or the list itself
    flows:    in training, the key or attribute of the list of all its predictions, if another
    iters:    the name of its argument for the number of iterations, if it has one
    options:  further arguments of every call
    after:    the name of its module whose output is the features of both frames: where LCV attaches
    channels: of these features, where the module does not tell
    """

    range: tuple[float, float] = (0.0, 255.0)
    bgr: bool = False
    multiple: int = 1
    fit: str = "pad"
    least: int = 1
    stacked: str | None = None
    flow: str | None = None
    flows: str | None = None
    iters: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    after: str | None = None
    channels: int | None = None

    def __post_init__(self) -> None:
        if self.fit not in FITS:
            raise ArgumentError(f"wrap: fit is {self.fit!r}, wanted {' or '.join(FITS)}")
        for name in ("multiple", "least"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"wrap: {name} is {value!r}, wanted a whole number from 1 on")
        low, high = self.range
        if not low < high:
            raise ArgumentError(f"wrap: range is {self.range}, wanted (black, white), as (0, 255)")

    def scaled(self, image: Tensor) -> Tensor:
        """An image in 0 … 255, RGB, in the range and order of the network."""
        low, high = self.range
        image = image * ((high - low) / 255) + low
        return image.flip(1) if self.bgr else image

    def flows_in(self, returned: Any, network: str) -> Sequence[Any]:
        """The flows in what the network returned, the last one last."""
        key = self.flow
        if self.flows is not None and _has(returned, self.flows):
            key = self.flows
        if key is not None:
            if not _has(returned, key):
                raise ArgumentError(
                    f"{network}: returned {described(returned)}, which has no {key!r}"
                )
            returned = returned[key] if isinstance(returned, Mapping) else getattr(returned, key)
        if isinstance(returned, Tensor):
            return [returned]
        if isinstance(returned, list | tuple) and returned:
            return returned
        raise ArgumentError(
            f"{network}: returned {described(returned)}, wanted a flow or a list of flows. Say where "
            f"the flow is: lcv.wrap(network, flow=NAME)"
        )


KNOWN = {
    "torchvision.models.optical_flow.raft.RAFT": Convention(
        range=(-1.0, 1.0), multiple=8, least=128, iters="num_flow_updates", after="feature_encoder"
    ),
    # They pad by themselves.
    "ptlflow.models.base_model.base_model.BaseModel": Convention(
        range=(0.0, 1.0), bgr=True, stacked="images", flow="flows", flows="flow_preds"
    ),
}
"""The conventions of other packages, by the class of their networks."""

ENCODERS = {"feature_encoder": "conv", "fnet": "conv2"}
"""Feature encoders of well-known networks, and the bare linear layer they end in."""


def known_convention(network: object) -> Convention | None:
    """The convention of a network of torchvision or ptlflow; None for others."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(network).__mro__)
    return next((KNOWN[name] for name in names if name in KNOWN), None)


def described(returned: Any) -> str:
    """`a dictionary of flows, hidden` or `a Namespace`, for messages."""
    if isinstance(returned, Mapping):
        return f"a dictionary of {', '.join(map(str, returned))}"
    return f"a {type(returned).__name__}"


def _has(returned: Any, key: str) -> bool:
    return key in returned if isinstance(returned, Mapping) else hasattr(returned, key)

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
    """How a network is called; `lcv.wrap` says what each field means."""

    range: tuple[float, float] = (0.0, 255.0)
    bgr: bool = False
    multiple: int = 1
    fit: str = "pad"
    least: int = 1
    stacked: str | None = None
    flow: str | int | None = None
    flows: str | int | None = None
    iters: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    after: str | None = None
    channels: int | None = None

    def __post_init__(self) -> None:
        if self.fit not in FITS:
            raise ArgumentError(f"wrap: fit is {self.fit!r}, wanted {' or '.join(FITS)}")
        for name in ("multiple", "least"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ArgumentError(f"wrap: {name} is {value!r}, wanted a whole number, 1 or more")
        if not isinstance(self.options, Mapping):
            raise ArgumentError(f"wrap: options is {self.options!r}, wanted names and values")
        try:
            low, high = map(float, self.range)
        except (TypeError, ValueError):
            low = high = 0.0
        if not low < high:
            raise ArgumentError(
                f"wrap: range is {self.range!r}, wanted (black, white), as (0, 255)"
            )

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
                what = "flow" if key == self.flow else "flows"
                raise ArgumentError(
                    f"{network}: returned {described(returned)}; it has no {key!r}. Correct {what}= "
                    f"in lcv.wrap"
                )
            if isinstance(returned, Mapping) or isinstance(key, int):
                returned = returned[key]
            else:
                returned = getattr(returned, key)
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
    """`a dictionary of flows, hidden` or `a Namespace with flow`, for messages."""
    if isinstance(returned, Mapping):
        return f"a dictionary of {', '.join(map(str, returned))}"
    if isinstance(returned, list | tuple):
        return f"a {type(returned).__name__} of {len(returned)}"
    own = ", ".join(name for name in getattr(returned, "__dict__", ()) if not name.startswith("_"))
    return f"a {type(returned).__name__}" + (f" with {own}" if own else "")


def _has(returned: Any, key: str | int) -> bool:
    if isinstance(returned, Mapping):
        return key in returned
    if isinstance(key, int):
        return isinstance(returned, list | tuple) and -len(returned) <= key < len(returned)
    return hasattr(returned, key)

"""A network with its settings, called on frames whose features are computed once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.models.types import FlowModel, FlowOutput, Role, is_flow_model

TILES = "tiles"
"""The strategy that cuts frames into tiles, for networks that can start from a given flow."""


@dataclass
class Encoded:
    """A frame and the features computed of it so far.

    image:  (1, 3, h, w), on the device
    reused: whether another pair will begin with this frame, so that it is encoded as its first too
    """

    image: Tensor
    reused: bool = False
    features: dict[Role, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Matcher:
    """A network and what it is called with; `matcher_for` checks that they fit."""

    model: FlowModel
    encodes_by_role: bool
    iters: int | None = None
    pad: str | None = None

    @property
    def strategies(self) -> tuple[str, ...]:
        """Ways to compute a pair, most memory first."""
        return (*self.model.volumes, TILES) if self.model.takes_flow_init else self.model.volumes

    def with_strategy(self, strategy: str) -> Matcher:
        """The same with the network's cost volume held in that way; tiles hold it in the first."""
        volume = self.model.volumes[0] if strategy == TILES else strategy
        return replace(self, model=self.model.with_volume(volume))

    def features(self, frame: Encoded, role: Role) -> Any:
        """The features of a frame as the first or second of a pair."""
        if not self.encodes_by_role and (frame.reused or "first" in frame.features):
            role = "first"
        if role not in frame.features:
            frame.features[role] = self.model.encode(frame.image, role, self.pad)
        return frame.features[role]

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> FlowOutput:
        """Flow between two frames; start: `low` of another pair, carried over."""
        features = self.features(first, "first"), self.features(second, "second")
        height, width = first.image.shape[2:]
        return self.model.match(
            *features, size=(height, width), iters=self.iters, flow_init=start, all_flows=False
        )


def matcher_for(model: nn.Module, name: str, iters: int | None, pad: str | None) -> Matcher:
    """The matcher of a network, its settings checked before any work is done."""
    if not is_flow_model(model):
        raise ArgumentError(f"{name} is a {type(model).__name__}; make it a network with lcv.wrap")
    takes = {"iters": model.defaults.iters is not None, "pad": bool(model.defaults.pads)}
    for option, value in (("iters", iters), ("pad", pad)):
        if value is not None and not takes[option]:
            raise ArgumentError(f"{name} takes no `{option}`, got {value!r}; leave it out")
    if iters is not None and (isinstance(iters, bool) or not isinstance(iters, int) or iters < 1):
        raise ArgumentError(f"iters is {iters!r}, wanted a whole number of at least 1")
    if pad is not None and pad not in model.defaults.pads:
        modes = ", ".join(model.defaults.pads)
        raise ArgumentError(f"pad: unknown mode {pad!r}; the modes are {modes}")
    pad = pad or next(iter(model.defaults.pads), None)
    return Matcher(model, model.encodes_by_role(), iters, pad)

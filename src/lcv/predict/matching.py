"""A network with its settings, called on frames whose features are computed once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from torch import Tensor, nn

from lcv.cost_volume.warp import warp_error
from lcv.errors import ArgumentError
from lcv.losses.occlusion import occluded_by_consistency
from lcv.models.fast import Prepared
from lcv.models.types import FlowModel, FlowOutput, Role, is_flow_model

TILES = "tiles"  # the strategy that cuts frames into tiles, for networks that can start from a flow


class Wanted(NamedTuple):
    """What is asked for beside the flow."""

    backward: bool = False
    occlusion: bool = False
    warp_error: bool = False

    @property
    def both_ways(self) -> bool:
        """Whether the flow from frame 2 to frame 1 must be computed."""
        return self.backward or self.occlusion


class Flows(NamedTuple):
    """flow, backward: (1, 2, h, w); occluded: (1, 1, h, w) bool; warp_error: (1, 1, h, w)"""

    flow: Tensor
    low: Tensor | None
    backward: Tensor | None
    occluded: Tensor | None
    warp_error: Tensor | None


@dataclass
class Encoded:
    """A frame and the features computed of it so far.

    image:  (1, 3, h, w), on the device
    reused: whether another pair will begin with this frame, so that it is encoded as its first too
    size:   (h, w) of the frame that was given; None: the image's own, which was not reduced
    """

    image: Tensor
    reused: bool = False
    size: tuple[int, int] | None = None
    features: dict[Role, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Matcher:
    """A network and what it is called with; `matcher_for` checks that they fit.

    half: the half precision in which pairs are computed by the prepared network; None: by the
        network itself, frame by frame
    """

    model: FlowModel
    encodes_by_role: bool
    iters: int | None = None
    pad: str | None = None
    half: str | None = None
    volume: str = ""
    prepared: dict[str, Prepared] = field(default_factory=dict)

    @property
    def strategies(self) -> tuple[str, ...]:
        """Ways to compute a pair, most memory first."""
        return (*self.model.volumes, TILES) if self.model.takes_flow_init else self.model.volumes

    def with_strategy(self, strategy: str) -> Matcher:
        """The same with the network's cost volume held in that way; tiles hold it in the first."""
        volume = self.model.volumes[0] if strategy == TILES else strategy
        return replace(self, model=self.model.with_volume(volume), volume=volume)

    def features(self, frame: Encoded, role: Role) -> Any:
        """The features of a frame as the first or second of a pair."""
        if not self.encodes_by_role and (frame.reused or "first" in frame.features):
            role = "first"
        if role not in frame.features:
            frame.features[role] = self.model.encode(frame.image, role, self.pad)
        return frame.features[role]

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> FlowOutput:
        """Flow between two frames; start: `low` of another pair, carried over."""
        if self.half is not None:
            if self.volume not in self.prepared:
                self.prepared[self.volume] = Prepared(cast(nn.Module, self.model), self.half)
            run = self.prepared[self.volume]
            return run(first.image, second.image, iters=self.iters, flow_init=start, pad=self.pad)
        features = self.features(first, "first"), self.features(second, "second")
        height, width = first.image.shape[2:]
        return self.model.match(
            *features, size=(height, width), iters=self.iters, flow_init=start, all_flows=False
        )


def matcher_for(
    model: nn.Module, name: str, iters: int | None, pad: str | None, half: str | None = None
) -> Matcher:
    """The matcher of a network, its settings checked before any work is done."""
    if not is_flow_model(model):
        raise ArgumentError(f"{name} is a {type(model).__name__}; pass it to lcv.wrap first")
    takes = {"iters": model.defaults.iters is not None, "pad": bool(model.defaults.pads)}
    for option, value in (("iters", iters), ("pad", pad)):
        if value is not None and not takes[option]:
            raise ArgumentError(f"{name} takes no `{option}`, got {value!r}; leave it out")
    if iters is not None and (isinstance(iters, bool) or not isinstance(iters, int) or iters < 1):
        raise ArgumentError(f"iters is {iters!r}, wanted a whole number of at least 1")
    if pad is not None and pad not in model.defaults.pads:
        modes = ", ".join(model.defaults.pads)
        raise ArgumentError(f"pad: unknown mode {pad!r}; the modes are {modes}")
    iters, pad = iters or model.defaults.iters, pad or next(iter(model.defaults.pads), None)
    return Matcher(model, model.encodes_by_role(), iters, pad, half)


def match_whole(
    matcher: Matcher, first: Encoded, second: Encoded, wanted: Wanted, start: Tensor | None = None
) -> Flows:
    """The pair in one piece. start: for the forward direction alone"""
    output = matcher.match(first, second, start)
    backward = None if output.backward is None else output.backward.flow
    if backward is None and wanted.both_ways:
        backward = matcher.match(second, first).flow
    images = first.image, second.image
    return with_companions(Flows(output.flow, output.low, backward, None, None), images, wanted)


def with_companions(flows: Flows, images: tuple[Tensor, Tensor], wanted: Wanted) -> Flows:
    """What follows from the two flows and the two images, (1, 3, h, w), without the network."""
    flow, low, backward, occluded, error = flows
    flow, backward = flow.float(), None if backward is None else backward.float()
    if wanted.occlusion and backward is not None:
        occluded, _ = occluded_by_consistency(flow, backward)
    if wanted.warp_error:
        error = warp_error(*images, flow)
    return Flows(flow, low, backward if wanted.backward else None, occluded, error)

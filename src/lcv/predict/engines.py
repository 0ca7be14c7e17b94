"""The networks as prediction sees them: frames encoded once, and matched in either direction.

Each engine does what its network's `forward` does, step for step and so to the last bit, but
keeps the encodings apart, so that a frame that two pairs share is encoded once.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from lcv.cost_volume.allpairs import AllPairs
from lcv.cost_volume.ondemand import OnDemand
from lcv.errors import ArgumentError
from lcv.models.ddflow import DDFlow
from lcv.models.ddflow.model import MIN_SIDE
from lcv.models.raft import RAFT, Features
from lcv.models.raft.model import LEVELS
from lcv.models.raft.padding import MODES, padding_for
from lcv.models.types import FlowOutput
from lcv.models.vcn import VCN
from lcv.models.vcn.model import SMALLEST, fit, fit_flow, next_multiple


@dataclass
class Encoded:
    """A frame and what has been computed of it so far. image: (1, 3, h, w), on the device"""

    image: Tensor
    parts: dict[str, Any] = field(default_factory=dict)


class Matched(NamedTuple):
    """Flow between two encoded frames, (1, 2, h, w); `backward` where the network gives it too."""

    flow: Tensor
    low: Tensor | None
    backward: Tensor | None


class Engine(Protocol):
    """A network with its settings.

    least:       the least side of a frame, in pixels
    strategies:  ways to hold the cost volume, dearest in memory first
    takes_start: whether a flow to start from can be given
    """

    model: Any
    least: int
    strategies: tuple[str, ...]
    takes_start: bool

    def with_volume(self, strategy: str) -> Engine:
        """The same network with its cost volume held in another way."""

    def encode(self, frame: Encoded, first: bool) -> None:
        """Compute what is still missing of a frame as the first or as the second of a pair."""

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> Matched:
        """Flow between two encoded frames; start: `low` of another pair, carried over."""


def engine_for(model: nn.Module, iters: int | None, pad: str | None) -> Engine:
    """The engine of a network, its settings checked before any work is done."""
    if isinstance(model, RAFT):
        return RaftEngine(model, iters, pad)
    for name, value in (("iters", iters), ("pad", pad)):
        if value is not None:
            raise ArgumentError(
                f"{type(model).__name__} takes no `{name}`, got {value!r}; leave it out"
            )
    if isinstance(model, VCN):
        return VcnEngine(model)
    if isinstance(model, DDFlow):
        return DDFlowEngine(model)
    raise ArgumentError(
        f"the model is a {type(model).__name__}, wanted the name of a network or one that "
        f"lcv.build or lcv.load made"
    )


class RaftEngine:
    """RAFT: padded to multiples of 8; context only of frames whose flow is sought."""

    least = 8 * (2 ** (LEVELS - 1) - 1) + 1
    strategies: tuple[str, ...] = ("all-pairs", "on-demand", "tiles")
    takes_start = True

    def __init__(self, model: RAFT, iters: int | None, pad: str | None) -> None:
        if iters is not None and (isinstance(iters, bool) or not isinstance(iters, int)):
            raise ArgumentError(f"iters is {iters!r}, wanted a whole number of at least 1")
        if iters is not None and iters < 1:
            raise ArgumentError(f"iters is {iters}, wanted a whole number of at least 1")
        if pad is not None and pad not in MODES:
            raise ArgumentError(f"pad: unknown mode {pad!r}; the modes are {', '.join(MODES)}")
        self.model: Any = model
        self.iters, self.pad = iters, pad or "sintel"

    def with_volume(self, strategy: str) -> RaftEngine:
        had = self.model.cost_volume
        if not isinstance(had, AllPairs | OnDemand):
            raise ArgumentError(f"the model's cost volume is a {type(had).__name__}")
        kind = OnDemand if strategy == "on-demand" else AllPairs
        if isinstance(had, kind):
            return self
        # A shallow copy: the weights are shared, the volume is not.
        model = copy.copy(self.model)
        model.cost_volume = kind(had.levels, had.radius, had.scale)
        return RaftEngine(model, self.iters, self.pad)

    def encode(self, frame: Encoded, first: bool) -> None:
        if "matching" in frame.parts and ("context" in frame.parts or not first):
            return
        if "matching" not in frame.parts:
            # The input is handed over and not kept: the network lets go of it when it has scaled it.
            features = self.model.encode(self._input(frame.image), context=first)
            frame.parts["matching"] = features.matching
            if first:
                frame.parts["context"] = features.context
        else:
            frame.parts["context"] = self.model.cnet(self._input(frame.image) * (2 / 255) - 1)

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> Matched:
        self.encode(first, first=True)
        self.encode(second, first=False)
        output = self.model.match(
            Features(first.parts["matching"], first.parts["context"]),
            Features(second.parts["matching"], None),
            iters=self.iters,
            flow_init=start,
            all_flows=False,
        )
        return Matched(self._padding(first.image).undo(output.flow), output.low, None)

    def _padding(self, image: Tensor) -> Any:
        return padding_for(image.shape[2], image.shape[3], self.model.stride, self.pad)

    def _input(self, image: Tensor) -> Tensor:
        return self._padding(image).apply(image.to(self.model.fnet.conv1.weight.dtype))


class VcnEngine:
    """VCN: resized to multiples of 64; encoded by role if its two means differ."""

    least = SMALLEST
    strategies: tuple[str, ...] = ("local",)
    takes_start = False

    def __init__(self, model: VCN) -> None:
        self.model: Any = model
        self.alike = model.encodes_alike

    def with_volume(self, strategy: str) -> VcnEngine:
        return self

    def encode(self, frame: Encoded, first: bool) -> None:
        role = 1 if first or self.alike else 2
        if str(role) not in frame.parts:
            h, w = frame.image.shape[2:]
            size = next_multiple(h, self.model.stride), next_multiple(w, self.model.stride)
            image = self.model.normalise(frame.image, role)
            frame.parts[str(role)] = self.model.pyramid(fit(image, size))

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> Matched:
        self.encode(first, first=True)
        self.encode(second, first=False)
        output = self.model.match(
            first.parts["1"], second.parts["1" if self.alike else "2"], all_flows=False
        )
        h, w = first.image.shape[2:]
        return Matched(fit_flow(output.flow, (h, w)), output.low, None)


class DDFlowEngine:
    """DDFlow: frames as they are; both directions at once."""

    least = MIN_SIDE
    strategies: tuple[str, ...] = ("local",)
    takes_start = False

    def __init__(self, model: DDFlow) -> None:
        self.model: Any = model

    def with_volume(self, strategy: str) -> DDFlowEngine:
        return self

    def encode(self, frame: Encoded, first: bool) -> None:
        if "features" not in frame.parts:
            like = self.model.context.conv1.weight
            frame.parts["features"] = self.model.encode(frame.image.to(like.dtype))

    def match(self, first: Encoded, second: Encoded, start: Tensor | None = None) -> Matched:
        self.encode(first, first=True)
        self.encode(second, first=False)
        h, w = first.image.shape[2:]
        output: FlowOutput = self.model.match(
            first.parts["features"], second.parts["features"], size=(h, w), all_flows=False
        )
        backward = output.backward
        return Matched(output.flow, output.low, backward.flow if backward is not None else None)

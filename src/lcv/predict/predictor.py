"""`lcv.Predictor`: a network, a device and a memory limit, called on frames of any kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, ShapeError
from lcv.models.build import load
from lcv.models.embedded import EMBEDDED
from lcv.models.registry import Spec
from lcv.models.wrap import as_flow_model
from lcv.predict.frames import Frame, as_frame, in_words, same_size
from lcv.predict.matching import Encoded, matcher_for
from lcv.predict.memory import parse_bytes
from lcv.predict.pairs import Flows, Wanted, match_whole
from lcv.predict.planner import Plan, Planner
from lcv.predict.result import FlowResult
from lcv.predict.stream import Stream
from lcv.predict.tiles import match_tiles

PRECISIONS = {"float32": None, "bf16": torch.bfloat16}


class Predictor:
    """Flow from frames.

        flow = lcv.Predictor("raft-large")("frame1.png", "frame2.png").flow

    model:      the name of a network, a factory ("file.py:factory"), or a network that `lcv.build`,
                `lcv.load`, `lcv.attach` or `lcv.wrap` made, which is put into evaluation mode
    weights:    a file or the name of a published checkpoint; by default the embedded ones
    device:     "cpu", "cuda", …; by default a GPU if there is one
    iters, pad: as the network takes them
    max_memory: what a prediction may add to the memory that the process holds once the model is
                loaded: bytes, or a text such as "6GB"; by default what is free
    strategy:   "auto", or one of those of `Plan`
    precision:  "float32" or "bf16" (autocast)
    """

    def __init__(
        self,
        model: str | Callable[..., Any] = "raft-large",
        weights: str | os.PathLike[str] | None = None,
        *,
        device: str | torch.device | None = None,
        iters: int | None = None,
        pad: str | None = None,
        max_memory: int | str | None = None,
        strategy: str = "auto",
        precision: str = "float32",
    ) -> None:
        if precision not in PRECISIONS:
            raise ArgumentError(
                f"unknown precision {precision!r}; there are {', '.join(PRECISIONS)}"
            )
        self.precision = precision
        self.device = _device(device)
        network = _network(model, weights).eval().to(self.device)
        self.name = _name(network, model)
        self.matcher = matcher_for(network, self.name, iters, pad)
        if strategy not in ("auto", *self.matcher.strategies):
            raise ArgumentError(
                f"unknown strategy {strategy!r} for {self.name}; there are auto, "
                f"{', '.join(self.matcher.strategies)}"
            )
        self.strategy = strategy
        self.max_memory = None if max_memory is None else parse_bytes(max_memory)
        self.planner = Planner(
            self.name,
            self.matcher,
            self.device,
            autocast=PRECISIONS[precision],
            limit=self.max_memory,
            strategy=strategy,
        )

    @property
    def model(self) -> nn.Module:
        """The network."""
        return cast(nn.Module, self.matcher.model)

    def __call__(
        self,
        frame1: Any,
        frame2: Any,
        *,
        backward: bool = False,
        occlusion: bool = False,
        warp_error: bool = False,
    ) -> FlowResult:
        """Flow from frame1 to frame2.

        frame1, frame2: paths, arrays or tensors, see `lcv.predict.frames.as_frame`; of one size
        """
        frames = as_frame(frame1, "frame1"), as_frame(frame2, "frame2")
        same_size(*frames)
        first, second = (self.take(frame) for frame in frames)
        result, _ = self.match(first, second, Wanted(backward, occlusion, warp_error))
        return result

    def stream(
        self,
        frames: Iterable[Any],
        *,
        warm_start: bool = False,
        backward: bool = False,
        occlusion: bool = False,
        warp_error: bool = False,
    ) -> Iterator[FlowResult]:
        """Flow from each frame to the next, each frame encoded once, in constant memory.

        warm_start: begin each pair where the last one ended (RAFT only), except after a scene cut
        """
        wanted = Wanted(backward, occlusion, warp_error)
        # Made at once and not at the first step, so that a wrong argument is said at once too.
        stream = Stream(self, warm_start=warm_start, wanted=wanted)
        return (result for result in map(stream.push, frames) if result is not None)

    def plan(
        self,
        height: int,
        width: int,
        *,
        backward: bool = False,
        occlusion: bool = False,
        warp_error: bool = False,
    ) -> Plan:
        """How frames of this size would be computed, and the memory that would take."""
        self._check_size((height, width), "the frame")
        return self.planner.plan(height, width, Wanted(backward, occlusion, warp_error))

    def take(self, frame: Frame, reused: bool = False) -> Encoded:
        """A frame on the device, its size held against the network's least; nothing encoded."""
        self._check_size(frame.size, frame.name)
        return Encoded(frame.image.to(self.device), reused)

    def match(
        self,
        first: Encoded,
        second: Encoded,
        wanted: Wanted,
        start: Tensor | None = None,
        notes: tuple[str, ...] = (),
    ) -> tuple[FlowResult, Tensor | None]:
        """The result for two frames that were taken, and the `low` to start the next pair from."""
        height, width = first.image.shape[2:]
        plan = self.planner.plan(height, width, wanted)
        dtype = PRECISIONS[self.precision]
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None),
        ):
            matcher = self.matcher.with_strategy(plan.strategy)
            if plan.tiling is None:
                flows = match_whole(matcher, first, second, wanted, start)
            else:
                flows, seams = match_tiles(matcher, first, second, plan.tiling, wanted, start)
                notes = (
                    *notes,
                    f"{plan.tiling.number} tiles, which differ by {seams.mean:.2f} px on average "
                    f"where they overlap",
                )
            return _as_result(flows, plan, notes), flows.low

    def _check_size(self, size: tuple[int, int], name: str) -> None:
        if min(size) < self.matcher.model.least_side:
            raise ShapeError(
                f"{name} is {in_words(size)} pixels; {self.name} needs at least "
                f"{self.matcher.model.least_side}×{self.matcher.model.least_side}. Enlarge the frames first."
            )

    def check_warm_start(self, warm_start: bool) -> None:
        """Refuse a warm start of a network that cannot be started anywhere."""
        if warm_start and not self.matcher.model.takes_flow_init:
            raise ArgumentError(
                f"{self.name} takes no flow to start from, so warm_start means nothing to it; "
                f"leave it out, or use raft-large or raft-small"
            )


def _network(model: str | Callable[..., Any], weights: str | os.PathLike[str] | None) -> nn.Module:
    if isinstance(model, str):
        return load(model, weights)
    if weights is not None:
        raise ArgumentError("weights are given beside a network that has its own; leave them out")
    if not callable(model):
        raise ArgumentError(f"model is a {type(model).__name__}, wanted a name or a network")
    return cast(nn.Module, as_flow_model(model, "the model"))


def _name(network: nn.Module, given: object) -> str:
    """As messages and results call it: embedded weights by their own name, a factory without path."""
    spec = getattr(network, "spec", None)
    if isinstance(given, str) and given in EMBEDDED:
        return given
    return (
        spec.name if isinstance(spec, Spec) else type(getattr(network, "network", network)).__name__
    )


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # An empty tensor is the proof, and it completes "cuda" to "cuda:0".
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ArgumentError(f"device {device!r} cannot be used: {str(error)[:200]}") from None


def _as_result(flows: Flows, plan: Plan, notes: tuple[str, ...]) -> FlowResult:
    def array(x: Tensor | None) -> Any:
        return None if x is None else x[0].movedim(0, 2).contiguous().cpu().numpy()

    occluded, error = array(flows.occluded), array(flows.warp_error)
    return FlowResult(
        flow=array(flows.flow),
        backward=array(flows.backward),
        occluded=None if occluded is None else occluded[:, :, 0],
        warp_error=None if error is None else error[:, :, 0],
        plan=plan,
        notes=notes,
    )

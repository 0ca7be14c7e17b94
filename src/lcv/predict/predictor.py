"""`lcv.Predictor`: a network, a device and a memory limit, called on frames or on a stream of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor, nn

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.data.cuts import Glance, glance, is_cut
from lcv.errors import ArgumentError, ShapeError
from lcv.memory import measured, parse_bytes, return_freed_memory
from lcv.models.build import load
from lcv.models.embedded import EMBEDDED
from lcv.models.registry import Spec
from lcv.models.wrap import as_flow_model
from lcv.predict.frames import Frame, as_frame, check_same_size, in_words, pinned
from lcv.predict.matching import Encoded, Wanted, match_whole, matcher_for
from lcv.predict.memory import Plan, Planner, costs_of
from lcv.predict.pending import Pending
from lcv.predict.reduced import enlarged, reduced, reduced_size
from lcv.predict.result import FlowResult
from lcv.predict.tiles import match_tiles

PRECISIONS = {"auto": None, "float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
NOTHING_ELSE = Wanted()
OUT_OF_MEMORY = "out of memory"  # how the note on a pair begins that fell back


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
    precision:  "float32", "bf16", "fp16" (CUDA only), or "auto": "fp16" on CUDA for RAFT, else
                "float32". RAFT in half precision on CUDA is prepared and runs in CUDA graphs, its
                coordinates, sums, W and upsampling in float32; others use autocast
    max_side:   frames whose longer side has more pixels are computed smaller; the flow has the
                size of the frames that were given
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
        precision: str = "auto",
        max_side: int | None = None,
    ) -> None:
        if max_side is not None and (type(max_side) is not int or max_side < 1):
            raise ArgumentError(f"max_side is {max_side!r}, wanted a whole number of pixels")
        if precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise ArgumentError(f"unknown precision {precision!r}; there are {known}")
        self.max_side = max_side
        self.device = _device(device)
        network = _network(model, weights).eval().to(self.device)
        is_prepared = self.device.type == "cuda" and hasattr(network, "for_inference")
        if precision == "fp16" and self.device.type != "cuda":
            raise ArgumentError(f"precision 'fp16' needs a GPU, not {self.device}; use bf16")
        self.precision = {"auto": "fp16" if is_prepared else "float32"}.get(precision, precision)
        half = self.precision if is_prepared and self.precision != "float32" else None
        spec = getattr(network, "spec", None)
        # Embedded weights are called by their own name, a factory without its path.
        plain = type(getattr(network, "network", network)).__name__
        built = spec.name if isinstance(spec, Spec) else plain
        self.name = model if isinstance(model, str) and model in EMBEDDED else built
        self.matcher = matcher_for(network, self.name, iters, pad, half)
        if strategy not in ("auto", *self.matcher.strategies):
            known = ", ".join(("auto", *self.matcher.strategies))
            raise ArgumentError(f"unknown strategy {strategy!r} for {self.name}; there are {known}")
        costs = costs_of(built, self.device.type)
        self.planner = Planner(self.name, costs, self.matcher, self.device, strategy)
        if max_memory is not None:
            self.planner.limit = parse_bytes(max_memory)
            return_freed_memory()

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
        check_same_size(*frames)
        first, second = (self.take(frame) for frame in frames)
        return self.match(first, second, Wanted(backward, occlusion, warp_error)).result()

    def stream(
        self, frames: Iterable[Any], *, warm_start: bool = False, **wanted: bool
    ) -> Iterator[FlowResult]:
        """Flow from each frame to the next, each frame encoded once, in constant memory.

        warm_start: begin each pair where the last one ended (RAFT only), except after a scene cut
        wanted:     backward, occlusion, warp_error, as above
        """
        # Created here, so that a wrong argument raises at once and not at the first step.
        stream = Stream(self, warm_start, Wanted(**wanted))
        return (result for result in map(stream.push, frames) if result is not None)

    def plan(self, height: int, width: int, **wanted: bool) -> Plan:
        """How frames of this size would be computed, and the memory that would take.

        wanted: backward, occlusion, warp_error, as above
        """
        size = self.computed_size(height, width)
        self.check_size(size, "the frame", (height, width))
        return self.planner.plan(*size, Wanted(**wanted))

    def computed_size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) at which the network sees frames of this size."""
        given = height, width
        return given if self.max_side is None else reduced_size(*given, self.max_side)

    def take(self, frame: Frame, reused: bool = False) -> Encoded:
        """A frame on the device, its size held against the network's least; nothing encoded."""
        size = self.computed_size(*frame.size)
        self.check_size(size, frame.name, frame.size)
        image = frame.image if size == frame.size else reduced(frame.image, size)
        if self.device.type == "cuda" and not image.is_cuda:
            image = pinned(image)
        return Encoded(image.to(self.device, non_blocking=True), reused, frame.size)

    def match(
        self,
        first: Encoded,
        second: Encoded,
        wanted: Wanted,
        start: Tensor | None = None,
        notes: tuple[str, ...] = (),
    ) -> Pending:
        """Flow for two frames that were taken; on CUDA, without waiting for it.

        Where CUDA runs out of memory, this one pair is computed by the next strategy.
        """
        height, width = first.image.shape[2:]
        plan = self.planner.plan(height, width, wanted)
        for attempt in chain([plan], self.planner.instead_of(plan, wanted)):
            if attempt is not plan:
                notes = (*notes, f"{OUT_OF_MEMORY}, so computed by {attempt.strategy}")
            try:
                return self._match(attempt, first, second, wanted, start, notes)
            except torch.OutOfMemoryError as error:
                said = str(error)  # not the error itself, which holds on to tensors
                for prepared in self.matcher.prepared.values():
                    prepared.forget()
        raise torch.OutOfMemoryError(said)

    def _match(
        self,
        plan: Plan,
        first: Encoded,
        second: Encoded,
        wanted: Wanted,
        start: Tensor | None,
        notes: tuple[str, ...],
    ) -> Pending:
        matcher = self.matcher.with_strategy(plan.strategy)
        dtype = None if matcher.half else PRECISIONS[self.precision]
        unknown: Any = measured(self.device) if plan.bytes is None else nullcontext()
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None),
            unknown as peak,
        ):
            if plan.tiling is None:
                flows = match_whole(matcher, first, second, wanted, start)
            else:
                flows = match_tiles(matcher, first, second, plan.tiling, wanted, start)
            if first.size is not None and first.size != first.image.shape[2:]:
                flows = enlarged(flows, first.size)
        if peak:
            plan = replace(plan, bytes=peak[0])
            self.planner.keep(plan)
        return Pending(flows, plan, notes)

    def check_size(self, size: tuple[int, int], name: str, full: tuple[int, ...]) -> None:
        """Refuse a frame computed at a size too small for the network. full: the frame's own size"""
        least = self.matcher.model.least_side
        if min(size) < least:
            why, advice = "", "Enlarge the frames first."
            if size != full:
                why, advice = f", reduced by max_side={self.max_side}", "Use a larger max_side."
            raise ShapeError(
                f"{name} is {in_words(size)} pixels{why}; {self.name} needs at least "
                f"{least}×{least}. {advice}"
            )

    def check_warm_start(self, warm_start: bool) -> None:
        """Refuse a warm start of a network that cannot be started anywhere."""
        if warm_start and not self.matcher.model.takes_flow_init:
            raise ArgumentError(
                f"{self.name} takes no flow to start from, so warm_start has no effect; "
                f"leave it out, or use raft-large or raft-small"
            )


class Stream:
    """Frames in, one at a time; from the second on, flow from the frame before.

        stream = Stream(predictor)
        for frame in frames:
            result = stream.push(frame)  # None for the first

    Facts: without warm start the results are those of `predictor(before, frame)`, to the last bit.
    A frame that cannot be used raises and breaks the stream there: the next one is a first again,
    so that no pair spans a gap.

    low: what the next pair starts from, (1, 2, h', w'), or None: from zero flow. It can be saved,
         and restored after pushing the same frame again
    """

    def __init__(
        self, predictor: Predictor, warm_start: bool = False, wanted: Wanted = NOTHING_ELSE
    ) -> None:
        predictor.check_warm_start(warm_start)
        self.predictor, self.warm_start, self.wanted = predictor, warm_start, wanted
        self.count = 0
        self.reset()

    def reset(self) -> None:
        """Forget the last frame and its flow: what comes next is the start of something else."""
        self._last: Frame | None = None
        self._encoded: Encoded | None = None
        self._glance: Glance | None = None
        self.low: Tensor | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the next frame is a first one."""
        return self._last is None

    def push(self, given: Any) -> FlowResult | None:
        """Flow from the frame pushed before to this one; None if there was none."""
        pending = self.begin(given)
        return None if pending is None else pending.result()

    def begin(self, given: Any) -> Pending | None:
        """The same, without waiting for the device."""
        self.count += 1
        try:
            return self._begin(as_frame(given, f"frame {self.count}"))
        except Exception:
            self.reset()
            raise

    def _begin(self, frame: Frame) -> Pending | None:
        predictor, last = self.predictor, self._last
        if last is not None:
            check_same_size(last, frame)
        encoded = predictor.take(frame, reused=True)
        seen = glance(encoded.image) if self.warm_start else None
        pending = None
        if last is not None and self._encoded is not None:
            notes: tuple[str, ...] = ()
            if self._glance is not None and seen is not None and is_cut(self._glance, seen):
                self.low = None
                notes = ("scene cut: started from zero flow",)
            start = None if self.low is None else forward_interpolate(self.low)
            pending = predictor.match(self._encoded, encoded, self.wanted, start, notes)
            self.low = pending.low if self.warm_start else None
        self._last, self._encoded, self._glance = frame, encoded, seen
        return pending


def _network(model: str | Callable[..., Any], weights: str | os.PathLike[str] | None) -> nn.Module:
    if isinstance(model, str):
        return load(model, weights)
    if weights is not None:
        raise ArgumentError("`weights` cannot be given with a network object, which has its own")
    if not callable(model):
        raise ArgumentError(f"model is a {type(model).__name__}, wanted a name or a network")
    return cast(nn.Module, as_flow_model(model, "the model"))


def _device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # An empty tensor is the proof, and it completes "cuda" to "cuda:0".
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ArgumentError(f"device {device!r} cannot be used: {str(error)[:200]}") from None

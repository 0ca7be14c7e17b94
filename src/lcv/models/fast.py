"""A network made ready to predict: prepared weights, and on CUDA its whole forward in one graph.

    run = Prepared(model.eval())
    flow = run(image1, image2, iters=20).flow

At ordinary sizes a forward pass is hundreds of short kernels, and starting them takes longer than
running them. A CUDA graph starts all of them at once. It holds for one shape, so there is one for each
shape that came twice, up to `keep`; the least recently used goes first.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.models.types import FlowOutput, tensor_of

PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
logger = logging.getLogger("lcv")


class Prepared:
    """Called like the network, for inference; weights changed later do not reach it.

    precision: "float32", "bf16", "fp16" or "auto", which is "fp16" on CUDA for a network that has
        `for_inference`, else "float32". Coordinates, sums, W and upsampling stay float32.
    graphs: whether to use CUDA graphs; by default on CUDA
    keep: how many shapes to keep graphs of

    A network may have `for_inference(dtype)`, which gives a callable of the same arguments prepared for
    it. Without one it runs as it is, under autocast if a half precision is asked for.
    """

    def __init__(
        self,
        model: nn.Module,
        precision: str = "auto",
        *,
        graphs: bool | None = None,
        keep: int = 4,
    ) -> None:
        if precision not in ("auto", *PRECISIONS):
            raise ArgumentError(
                f"Prepared: precision is {precision!r}, wanted one of auto, {', '.join(PRECISIONS)}"
            )
        if model.training:
            raise ArgumentError("Prepared: the network is in training mode; call .eval() first")
        if keep < 1:
            raise ArgumentError(f"Prepared: keep is {keep}, wanted at least 1")
        self.device = tensor_of(model).device
        on_gpu = self.device.type == "cuda"
        prepare = getattr(model, "for_inference", None)
        if precision == "auto":
            precision = "fp16" if on_gpu and prepare is not None else "float32"
        self.precision, self.keep = precision, keep
        self.graphs = on_gpu if graphs is None else graphs
        if self.graphs and not on_gpu:
            raise ArgumentError(
                f"Prepared: graphs need a CUDA device, the network is on {self.device}"
            )
        dtype = PRECISIONS[precision]
        self._run: Callable[..., FlowOutput]
        self._run = prepare(dtype) if prepare is not None else _AsItIs(model, dtype)
        self._kept: OrderedDict[Any, _Graph] = OrderedDict()
        self._seen: set[Any] = set()
        self._pool: Any = None
        how = "in CUDA graphs" if self.graphs else "without graphs"
        logger.info("%s on %s in %s, %s", type(model).__name__, self.device, precision, how)

    @torch.no_grad()
    def __call__(
        self,
        image1: Tensor,
        image2: Tensor,
        *,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        pad: str | None = None,
    ) -> FlowOutput:
        """Flow from image1 to image2, as the network's own forward gives it, to rounding."""
        tensors = (image1, image2) if flow_init is None else (image1, image2, flow_init)
        options = {"iters": iters, "pad": pad}
        options = {name: value for name, value in options.items() if value is not None}
        if not self.graphs or any(t.device != self.device for t in tensors):
            return _call(self._run, tensors, options)  # the network refuses what is elsewhere
        key = (*((t.shape, t.dtype) for t in tensors), *sorted(options.items()))
        if key not in self._seen:
            # Kernels are compiled and libraries choose theirs; a shape that comes once needs no graph.
            self._seen.add(key)
            return _call(self._run, tensors, options)
        graph = self._kept.get(key)
        if graph is None:
            if len(self._kept) == self.keep:
                self._kept.popitem(last=False)
            graph = self._captured(tensors, options)
            if graph is None:
                return _call(self._run, tensors, options)
            self._kept[key] = graph
        self._kept.move_to_end(key)
        return graph(tensors)

    def forget(self) -> None:
        """Let go of all graphs and of the memory they hold."""
        self._kept.clear()
        self._pool = None

    def _captured(self, tensors: tuple[Tensor, ...], options: dict[str, Any]) -> _Graph | None:
        """A graph of one call; None, from now on, if the network cannot be captured."""
        with torch.cuda.device(self.device):
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            given = tuple(t.clone() for t in tensors)
            # Once on the stream to be recorded, for libraries have a workspace for each stream.
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                _call(self._run, given, options)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            try:
                # In this thread alone: others may fetch results meanwhile.
                mode = "thread_local"
                with torch.cuda.graph(graph, self._pool, stream, capture_error_mode=mode):
                    out = _call(self._run, given, options)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                logger.warning(
                    "no CUDA graph, so prediction is slower: %s", str(error).splitlines()[0]
                )
                self.graphs = False
                return None
        return _Graph(graph, given, out)


class _Graph:
    """A recorded call: its arguments' places, and its results'."""

    def __init__(
        self, graph: torch.cuda.CUDAGraph, given: tuple[Tensor, ...], out: FlowOutput
    ) -> None:
        self.graph, self.given, self.out = graph, given, out

    def __call__(self, tensors: tuple[Tensor, ...]) -> FlowOutput:
        for place, tensor in zip(self.given, tensors, strict=True):
            place.copy_(tensor, non_blocking=True)
        self.graph.replay()
        copied: FlowOutput = _copied(self.out)  # the next replay writes into the same places
        return copied


class _AsItIs:
    """A network without a prepared form."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        self.model, self.dtype = model, dtype
        self.device = tensor_of(model).device.type

    def __call__(self, *tensors: Tensor, **options: Any) -> FlowOutput:
        half = self.dtype != torch.float32
        with torch.autocast(self.device, self.dtype, enabled=half, cache_enabled=False):
            out: FlowOutput = self.model(*tensors, **options)
        return out


def _call(
    run: Callable[..., FlowOutput], tensors: tuple[Tensor, ...], options: dict[str, Any]
) -> FlowOutput:
    if len(tensors) == 3:
        return run(*tensors[:2], flow_init=tensors[2], **options)
    return run(*tensors, **options)


def _copied(value: Any) -> Any:
    """The same with every tensor copied."""
    if isinstance(value, Tensor):
        return value.clone(memory_format=torch.contiguous_format)
    if isinstance(value, FlowOutput):
        return replace(value, **{f.name: _copied(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, tuple | list):
        return type(value)(_copied(each) for each in value)
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return value

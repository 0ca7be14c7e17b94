"""One step of learning a patch, and its replay from a CUDA graph."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lcv.errors import ArgumentError

_MEAN, _SQUARE = 0.9, 0.99


class Climb:
    """Gradient ascent on a picture in 0 … 255, by Adam's rule, without waiting for the device.

    rate: grey levels a step at first; it falls to a tenth of that along a cosine over `steps` steps
    """

    def __init__(self, start: Tensor, rate: float, steps: int) -> None:
        self.patch = start.clone()
        self._rate, self._steps = rate, steps
        self._mean = torch.zeros_like(start)
        self._square = torch.zeros_like(start)
        # The rate and the two corrections of averages that began at zero.
        self._factors = torch.zeros(3, device=start.device)

    def set_rate(self, step: int) -> None:
        """Before every step, from 0 on."""
        share = 0.55 + 0.45 * math.cos(math.pi * step / self._steps)
        factors = (self._rate * share, 1 - _MEAN ** (step + 1), 1 - _SQUARE ** (step + 1))
        for k, factor in enumerate(factors):
            self._factors[k].fill_(factor)  # by the kernel's argument: no copy from the host

    def __call__(self, objective: Callable[[Tensor], Tensor]) -> Tensor:
        """Take a step; the objective before it, a number on the device."""
        patch = self.patch.detach().requires_grad_(True)
        value = objective(patch)
        (gradient,) = torch.autograd.grad(value, patch)
        with torch.no_grad():
            rate, mean, square = self._factors.unbind()
            self._mean.lerp_(gradient, 1 - _MEAN)
            self._square.lerp_(gradient.square(), 1 - _SQUARE)
            # No gradient at all, as of a patch that does nothing, must not move it: 0 / ε = 0.
            move = (self._mean / mean) / ((self._square / square).sqrt() + 1e-12)
            self.patch.add_(rate * move).clamp_(0, 255)
        return value.detach()


class Replayed:
    """A function of tensors on CUDA, recorded at its first call and replayed from the second on.

    It must change things in place and not wait for the device; the next call overwrites its result.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: tuple[Tensor | None, ...] = ()
        self._output: Tensor | None = None

    def __call__(self, *inputs: Tensor | None) -> Tensor:
        if self._graph is None:
            return self._record(inputs)
        for kept, given in zip(self._inputs, inputs, strict=True):
            if (kept is None) != (given is None) or (
                kept is not None and given is not None and kept.shape != given.shape
            ):
                raise ArgumentError(
                    "--graph takes batches of one size, and these differ; leave it out"
                )
            if kept is not None and given is not None:
                kept.copy_(given)
        self._graph.replay()
        assert self._output is not None
        return self._output

    def _record(self, inputs: tuple[Tensor | None, ...]) -> Tensor:
        """Run it once on a side stream, as recording wants; recording itself runs nothing."""
        self._inputs = tuple(None if x is None else x.clone() for x in inputs)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            first = self._function(*self._inputs).clone()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._output = self._function(*self._inputs)
        return first

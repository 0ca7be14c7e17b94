"""One optimiser step: forward, backward, clip, update, without waiting for the device.

A loss or gradient that is not finite sets a flag on the device. From then on every update is
skipped, so the weights stay as they were before that step until the host reads the flag, some
steps later, and can look for the sample at its leisure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lcv.losses.multiscale import multiscale_loss
from lcv.losses.sequence import sequence_loss
from lcv.models.types import FlowOutput
from lcv.train.average import Average
from lcv.train.batches import TrainBatch
from lcv.train.compiled import Compiled
from lcv.train.config import LossConfig, TrainConfig
from lcv.train.distributed import Processes, replicated
from lcv.train.optim import Optimisers
from lcv.train.unsupervised import Seen, Teacher, unsupervised_loss

DTYPES = {"bf16": torch.float32, "float32": torch.float32, "float64": torch.float64}
NEVER = 2**62


def loss_of(
    config: LossConfig,
    output: FlowOutput,
    batch: TrainBatch,
    mean: Callable[[Tensor], Tensor],
    seen: Seen | None = None,
    sequence: Callable[..., Tensor] = sequence_loss,
) -> Tensor:
    """The loss of a batch.

    mean: averages mask counts over processes; seen: what the teacher saw; sequence: the sequence loss
    """
    if config.name == "unsupervised":
        images = batch.image1, batch.image2
        return unsupervised_loss(config.stage, output, *images, seen, reduce_count=mean)
    if config.name == "multiscale":
        extra = output.extra or {}
        return multiscale_loss(output.flows, batch.flow, batch.valid, reduce_count=mean, **extra)
    # A network that returns one flow has one prediction, and this is the plain L1 loss.
    flows = output.flows or (output.flow,)
    options = {"gamma": config.gamma, "max_flow": config.max_flow}
    return sequence(flows, batch.flow, batch.valid, weight=batch.weight, **options)


@contextmanager
def fastest_convolutions() -> Iterator[None]:
    """In the block, cuDNN times its ways to compute a convolution of a new shape, and keeps the fastest."""
    had = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = had


class Step:
    """Call it once a step; read `totals` and `failed_at` now and then."""

    def __init__(
        self, model: nn.Module, optimisers: Optimisers, config: TrainConfig, processes: Processes
    ) -> None:
        self.config, self.processes, self.optimisers = config, processes, optimisers
        self.model = model
        self.wrapped: nn.Module = model
        self.compiled = Compiled(model) if config.compile else None
        # After compiling, which may choose another layout: the average has the layout of the weights.
        self.average = Average(model, config.ema) if config.ema else None
        if processes.world > 1:
            self.wrapped = replicated(model)
        device = processes.device
        self.teacher: Teacher | None = None
        if config.loss.name == "unsupervised" and config.loss.stage == "distillation":
            self.teacher = Teacher(config, device, DTYPES[config.precision])
        self.number = torch.zeros((), dtype=torch.int64, device=device)
        self.failed_at = torch.full((), NEVER, dtype=torch.int64, device=device)
        # Loss, EPE, steps, and how many of them had truth to judge the EPE by.
        self.totals = torch.zeros(4, dtype=torch.float64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._static: TrainBatch | None = None

    def __call__(self, batch: TrainBatch, number: int) -> None:
        """Take one step with this process's share of the batch."""
        self.optimisers.set_rates(number)
        if self.average is not None:
            self.average.set_share(number - self.config.first_step)
        self.number.fill_(number)
        if not self.config.graph:
            self._step(batch)
        elif self._graph is None:
            self._warm_up_and_capture(batch)
        else:
            assert self._static is not None
            self._static.copy_(batch)
            self._graph.replay()

    def _step(self, batch: TrainBatch) -> None:
        self.optimisers.zero_grad()
        parts = batch.split(self.config.accumulate)
        loss = torch.zeros((), dtype=torch.float64, device=self.processes.device)
        epe = torch.zeros_like(loss)
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            with nullcontext() if last else self.alone():
                part_loss, part_epe = self._forward(part)
                (part_loss / len(parts)).backward()
            loss += part_loss.detach() / len(parts)
            epe += part_epe / len(parts)
        norm = nn.utils.clip_grad_norm_(self.optimisers.parameters, self.config.optim.clip)
        # One process's failure is everybody's: gradients are shared, losses are not.
        fine = torch.isfinite(norm) & torch.isfinite(self.processes.mean(loss))
        failed_now = torch.where(fine, torch.full_like(self.number, NEVER), self.number)
        self.failed_at.copy_(torch.minimum(self.failed_at, failed_now))
        skip = (self.failed_at < NEVER).float()
        self.optimisers.update(skip)
        if self.average is not None:
            self.average.update(skip)
        counted = torch.stack([loss, epe, torch.ones_like(loss), batch.valid.any().double()])
        self.totals += torch.where(skip > 0, torch.zeros_like(counted), counted)

    def _forward(self, batch: TrainBatch) -> tuple[Tensor, Tensor]:
        options: dict[str, Any] = {}
        if self.config.loss.iters is not None:
            options["iters"] = self.config.loss.iters
        device = self.processes.device.type
        half = self.config.precision == "bf16"
        with torch.autocast(
            device, torch.bfloat16, enabled=half, cache_enabled=not self.config.graph
        ):
            seen = None
            if self.teacher is not None:
                batch, seen = self.teacher.look(batch, self.number)
            with self.compiled.active() if self.compiled else nullcontext():
                output = self.wrapped(batch.image1, batch.image2, **options)
        sequence = self.compiled.sequence_loss if self.compiled else sequence_loss
        loss = loss_of(self.config.loss, output, batch, self.processes.mean, seen, sequence)
        with torch.no_grad():
            error = (output.flow - batch.flow).norm(dim=1, keepdim=True)
            known = batch.valid.sum().clamp(min=1)
            epe = torch.where(batch.valid, error, 0).sum() / known
        return loss, epe.double()

    def alone(self) -> Any:
        """Where gradients are not averaged over processes."""
        wrapped = self.wrapped
        return wrapped.no_sync() if isinstance(wrapped, DistributedDataParallel) else nullcontext()

    def _warm_up_and_capture(self, batch: TrainBatch) -> None:
        """Run the first step on a side stream, as capture wants, then record the step once.

        Recording runs nothing, so no step is taken twice. Both are on one stream that no other
        graph is recorded on: a library's workspace belongs to a stream (cuBLAS has one for each),
        so graphs of several networks can be replayed at once without sharing any.
        """
        self._static = batch.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with fastest_convolutions():
            with torch.cuda.stream(stream):
                self._step(self._static)
            torch.cuda.current_stream().wait_stream(stream)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=stream):
                self._step(self._static)

    def let_go(self) -> None:
        """Hold the other processes no longer; no step can follow."""
        self.wrapped = self.model

    def read(self) -> dict[str, float]:
        """Mean loss and EPE (where there is truth) since the last reading; waits for the device."""
        loss, epe, steps, judged = self.processes.mean(self.totals).tolist()
        self.totals.zero_()
        values = {"loss": loss / steps} if steps else {}
        return values | ({"epe": epe / judged} if judged else {})

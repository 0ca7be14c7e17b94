"""How fast a training step is, beside torchvision's.

    python benchmarks/training_step.py [--models raft-small raft-large] [--batch 12] [-o step.json]

Milliseconds a step: ours eager, captured in a CUDA graph, captured with compiled parts, and the last with
its pairs made meanwhile, as `lcv train ours_large` runs it; torchvision's network eager under bf16 autocast,
its batch given. Checks that the eager and the captured step have the same losses. Without CUDA only the
eager rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count, cycle, islice
from pathlib import Path

import torch
from torch import nn

from lcv.losses.sequence import sequence_loss
from lcv.provenance import provenance
from lcv.train.batches import Procedural, TrainBatch
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train.distributed import Processes
from lcv.train.network import make_model
from lcv.train.optim import Optimisers
from lcv.train.step import Step

PEERS = {"raft-small": "raft_small", "raft-large": "raft_large"}


def milliseconds(job: Callable[[], object], repeats: int = 20) -> float:
    for _ in range(3):
        job()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        job()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / repeats


def ours(
    config: TrainConfig, processes: Processes, made: bool = False
) -> tuple[list[float], float]:
    """Losses of the first steps, and milliseconds of one; made: pairs are made, not given."""
    torch.manual_seed(0)
    model = make_model(config)[0].to(processes.device).train()
    optimisers = Optimisers(model, config.optim, config.steps, config.graph)
    step, numbers = Step(model, optimisers, config, processes), count()
    batches = Procedural(config, processes, torch.float32).batches(0)
    if not made:
        batches = cycle(list(islice(batches, 4)))
    losses = []
    for _ in range(8):
        step(next(batches), next(numbers))
        losses.append(step.read()["loss"])
    taken = milliseconds(lambda: step(next(batches), next(numbers)), 48 if made else 20)
    step.let_go()
    return losses, taken


def theirs(name: str, batch: TrainBatch, iters: int) -> float:
    """Milliseconds of torchvision's step with the same loss."""
    from torchvision.models import optical_flow

    model = getattr(optical_flow, PEERS[name])().to(batch.image1.device).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4, fused=batch.image1.is_cuda)
    images = [image / 127.5 - 1 for image in (batch.image1, batch.image2)]

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast(batch.image1.device.type, torch.bfloat16):
            flows = model(*images, num_flow_updates=iters)
        sequence_loss([flow.float() for flow in flows], batch.flow, batch.valid).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return milliseconds(step)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=["raft-small", "raft-large"])
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--size", type=int, nargs=2, default=(368, 496))
    parser.add_argument("--iters", type=int, default=12)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    processes = Processes(0, 1, torch.device(options.device))
    found: dict[str, dict[str, float]] = {}
    good = True
    for name in options.models:
        config = TrainConfig(
            model=ModelConfig(name, inner_product="elliptical"),
            data=DataConfig(recipe="mixed", size=tuple(options.size), ahead=16),
            optim=OptimConfig(lr=1e-4),
            loss=LossConfig(iters=options.iters),
            steps=10_000,
            batch=options.batch,
            ema=0.999,
        )
        row = found[name] = {}
        eager, row["eager"] = ours(config, processes)
        if processes.device.type == "cuda":
            captured, row["graph"] = ours(replace(config, graph=True), processes)
            # bf16 and atomics: runs drift apart slowly, and the first steps are close.
            apart = max(abs(a - b) / abs(a) for a, b in zip(eager, captured, strict=True))
            row["losses_apart"], good = apart, good and apart < 0.02
            compiled = replace(config, graph=True, compile=True)
            _, row["compiled"] = ours(compiled, processes)
            _, row["compiled, pairs made"] = ours(compiled, processes, made=True)
        try:
            batch = next(Procedural(config, processes, torch.float32).batches(0))
            row["torchvision"] = theirs(name, batch, options.iters)
        except ImportError:
            print("torchvision is not installed, so there is nothing to compare with")
        print(name, {key: float(f"{value:.3g}") for key, value in row.items()}, flush=True)
    if options.output:
        settings = {k: v for k, v in vars(options).items() if k != "output"}
        said = {
            "rows": found,
            "settings": settings,
            "provenance": provenance(device=processes.device),
        }
        options.output.write_text(json.dumps(said, indent=1), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""How fast a training step is: made on the device, eager or captured whole in a CUDA graph.

    python benchmarks/training_step.py [--models raft-small raft-large] [--batch 12] [--device cuda]

Prints milliseconds a step for the data alone, for the eager step and for the captured one, and
checks that both give the same losses.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch

from lcv.train.batches import Procedural
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train.distributed import Processes
from lcv.train.network import make_model
from lcv.train.optim import Optimisers
from lcv.train.step import Step


def milliseconds(job, count: int) -> float:
    for _ in range(3):
        job()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        job()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / count


def losses(config: TrainConfig, processes: Processes, count: int) -> tuple[list[float], float]:
    torch.manual_seed(0)
    model = make_model(config)[0].to(processes.device).train()
    step = Step(
        model, Optimisers(model, config.optim, config.steps, config.graph), config, processes
    )
    batches = Procedural(config, processes, torch.float32).batches(0)
    batch = [next(batches) for _ in range(4)]
    seen = []
    for i in range(count):
        step(batch[i % 4], i)
        seen.append(step.read()["loss"])
    state = iter(range(count, 10**9))
    return seen, milliseconds(lambda: step(batch[0], next(state)), 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=["raft-small", "raft-large"])
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--size", type=int, nargs=2, default=(368, 496))
    parser.add_argument("--iters", type=int, default=12)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    processes = Processes(0, 1, torch.device(options.device))
    good = True
    print(
        f"torch {torch.__version__}, {options.device}, batch {options.batch}, {options.size}, bf16"
    )
    for name in options.models:
        config = TrainConfig(
            model=ModelConfig(name),
            data=DataConfig(size=tuple(options.size)),
            optim=OptimConfig(lr=1e-4),
            loss=LossConfig(iters=options.iters),
            steps=10_000,
            batch=options.batch,
        )
        batches = Procedural(config, processes, torch.float32).batches(0)
        data = milliseconds(lambda batches=batches: next(batches), 20)
        eager, eager_ms = losses(config, processes, 8)
        line = f"{name:<12} data {data:6.1f} ms   eager {eager_ms:6.1f} ms"
        if options.device.startswith("cuda"):
            captured, graph_ms = losses(
                TrainConfig(**{**vars(config), "graph": True}), processes, 8
            )
            worst = max(abs(a - b) / abs(a) for a, b in zip(eager, captured, strict=True))
            good &= worst < 0.02  # bf16 and atomics; the first steps of a run that diverges slowly
            line += f"   graph {graph_ms:6.1f} ms   losses differ by {worst:.1e}"
        print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

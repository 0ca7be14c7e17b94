"""The planner's predictions beside what processes really take.

    python benchmarks/planner.py [--models raft-large raft-small] [--sizes 436x1024 …] [--device cuda]

Prints one row for each network, size (height×width) and strategy, and exits with 1 if a prediction
is more than 15 % off. Each row is a process of its own: it imports, builds the network with random
weights, notes its resident size, predicts, then matches one pair of noise with two iterations
(more take no more memory), and tells its high-water mark above that size. On a CPU these are
Linux's numbers, on CUDA those of torch's allocator.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

MIB = 2**20
MODELS = ("raft-small", "raft-large")
SIZES = ("436x1024", "540x960", "720x1280", "900x1600", "1080x1920")
STRATEGIES = ("all-pairs", "on-demand", "tiles")
# So little that every size above is cut, by the large network into 448 pixels and by the small
# one into 512.
TILES_MEMORY = "350MB"
MOST_OFF = 0.15


def measure(
    model: str, strategy: str, height: int, width: int, device: str = "cpu"
) -> dict[str, float]:
    """Predicted and measured bytes of one pair, in a process of its own."""
    words = model, strategy, str(height), str(width), device
    command = [sys.executable, __file__, "--child", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def child(model: str, strategy: str, height: int, width: int, device: str = "cpu") -> None:
    """Print the two numbers for `measure`."""
    import numpy as np
    import torch

    import lcv

    torch.manual_seed(0)
    predictor = lcv.Predictor(
        lcv.build(model),
        device=device,
        iters=2 if model.startswith("raft") else None,
        strategy=strategy,
        max_memory=TILES_MEMORY if strategy == "tiles" else None,
    )
    noise = np.random.default_rng(0).integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    if device == "cpu":
        # The mark is set back to now: what the import needed for a moment is no part of it.
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        result = predictor(noise[0], noise[1])
        most = status("VmHWM")
    else:
        before = torch.cuda.memory_allocated()
        result = predictor(noise[0], noise[1])
        most = torch.cuda.max_memory_allocated()
    found = {
        "predicted": result.plan.bytes,
        "measured": most - before,
        "compiler": "torch._dynamo" in sys.modules,
    }
    print(json.dumps(found))


def status(key: str) -> int:
    """Bytes that the kernel notes of this process under a key of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    print(f"{'network':<12}{'size':>11}  {'strategy':<10}{'predicted':>10}{'measured':>10}  ratio")
    worst = 0.0
    for model in options.models:
        ways = options.strategies if model.startswith("raft") else ("local",)
        for size in options.sizes:
            for strategy in ways:
                height, width = map(int, size.split("x"))
                found = measure(model, strategy, height, width, options.device)
                ratio = found["predicted"] / found["measured"]
                worst = max(worst, abs(ratio - 1))
                numbers = [f"{found[key] / MIB:7.0f} MiB" for key in ("predicted", "measured")]
                print(
                    f"{model:<12}{size:>11}  {strategy:<10}{numbers[0]:>10}{numbers[1]:>10}"
                    f"{ratio:7.3f}",
                    flush=True,
                )
    print(f"the worst is {worst:.1%} off; {MOST_OFF:.0%} are allowed")
    return 0 if worst <= MOST_OFF else 1


if __name__ == "__main__":
    if "--child" in sys.argv:
        model, strategy, height, width, *device = sys.argv[2:]
        child(model, strategy, int(height), int(width), *device)
    else:
        sys.exit(main())

"""Pairs a second of the procedural source, with the bound it must keep.

    python benchmarks/procedural.py [--device cuda] [--batch 144] [--size 368 496] [--layers 8]

Times `generate` with the training recipe, all effects included, in batches of fresh indices. At
368×496 with 8 layers: at least 800 pairs a second on a CUDA device (an H200), 6 on two CPU threads,
or exit code 1. The fastest round counts: whatever else the machine does only adds to a time.
--plain leaves the effects out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import replace

import torch

from lcv.data.synthetic import TRAINING, generate, procedural_bank

BOUNDS = {"cuda": 800.0, "cpu": 6.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=None, help="144 on CUDA, 1 on a CPU")
    parser.add_argument("--size", type=int, nargs=2, default=(368, 496), metavar=("H", "W"))
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--plain", action="store_true", help="without effects")
    chosen = parser.parse_args()

    torch.set_num_threads(chosen.threads)
    on_cuda = chosen.device.startswith("cuda")
    batch = chosen.batch or (144 if on_cuda else 1)
    recipe = replace(TRAINING, layers=chosen.layers)
    if chosen.plain:
        recipe = recipe.without_effects()
    bank = procedural_bank(device=str(torch.empty(0, device=chosen.device).device))

    def seconds(first: int) -> float:
        if on_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        indices = range(first, first + batch)
        generate(recipe, 1, indices, tuple(chosen.size), chosen.device, textures=bank)
        if on_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    times = [seconds(k * batch) for k in range(chosen.rounds + 3)][3:]
    rate = batch / min(times)
    h, w = chosen.size
    print(
        f"{chosen.device}, torch {torch.__version__}: {h}×{w}, {chosen.layers} layers, batch "
        f"{batch}: {1e3 * min(times):.1f} ms a batch (median "
        f"{1e3 * statistics.median(times):.1f}), {rate:.1f} pairs/s"
    )
    if on_cuda:
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    if (h, w, chosen.layers) != (368, 496, 8):
        return 0
    bound = BOUNDS["cuda" if on_cuda else "cpu"]
    print(f"bound {bound:.0f} pairs/s: {'kept' if rate >= bound else 'MISSED'}")
    return 0 if rate >= bound else 1


if __name__ == "__main__":
    sys.exit(main())

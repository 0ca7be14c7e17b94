"""What W costs: building it, and applying it beside RAFT's all-pairs product.

    python benchmarks/inner_product.py [--channels 256] [--threads 2]

In one run: (1) W from its parameters, forwards and backwards and with one optimiser step, by the
Cayley map against the Riemannian route of Eq. (5), (6); (2) `left` against the all-pairs product
at RAFT's 55×128 map: at most 4 % of the FLOPs and 10 % of the time, or exit code 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode

from lcv.inner_product import StiefelSGD, make_inner_product

FLOP_SHARE, TIME_SHARE = 0.04, 0.10


def median_ms(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Medians of interleaved runs, so that a busy moment touches all jobs alike."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds + 2):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(times[2:]) for name, times in seconds.items()}


def flops(job: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        job()
    return counter.get_total_flops()


def building(channels: int) -> dict[str, Callable[[], object]]:
    """Forward, backward and one step of W alone, by both routes."""
    target = torch.randn(channels, channels)

    def cayley() -> None:
        by_adam.zero_grad()
        (elliptical.matrix() * target).sum().backward()
        by_adam.step()

    def riemannian() -> None:
        on_manifold.zero_grad()
        by_sgd.zero_grad()
        (stiefel.matrix() * target).sum().backward()
        on_manifold.step()
        by_sgd.step()

    elliptical = make_inner_product("elliptical", channels)
    by_adam = torch.optim.Adam(elliptical.parameters(), lr=1e-3)
    stiefel = make_inner_product("riemannian", channels)
    on_manifold = StiefelSGD([stiefel.P], lr=1e-3, momentum=0.9)
    by_sgd = torch.optim.Adam([stiefel.t], lr=1e-3)
    return {"Cayley": cayley, "Riemannian": riemannian}


def applying(channels: int, height: int, width: int) -> dict[str, Callable[[], object]]:
    """`left`, W built anew each time, and the all-pairs product that follows it."""
    f1, f2 = torch.randn(2, 1, channels, height, width).unbind()
    product = make_inner_product("elliptical", channels)

    @torch.no_grad()
    def left() -> object:
        return product.left(f1, f2)

    @torch.no_grad()
    def all_pairs() -> object:
        return f1.flatten(2).mT @ f2.flatten(2)

    return {"left": left, "all-pairs": all_pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, default=256)
    parser.add_argument("--height", type=int, default=55)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    print(f"torch {torch.__version__}, {options.threads} threads, c = {options.channels}, float32")
    built = median_ms(building(options.channels), options.rounds)
    print("\nW forwards, backwards and one step      ms")
    for name, ms in built.items():
        print(f"  {name:<36}{ms:6.1f}")
    print(f"  Riemannian / Cayley{built['Riemannian'] / built['Cayley']:23.1f}")

    jobs = applying(options.channels, options.height, options.width)
    counted = {name: flops(job) for name, job in jobs.items()}
    # The counter knows no linear solve: 2/3 c³ for its LU and 2 c³ for its two triangles.
    counted["left"] += 8 * options.channels**3 // 3
    timed = median_ms(jobs, options.rounds)
    flop_share = counted["left"] / counted["all-pairs"]
    time_share = timed["left"] / timed["all-pairs"]
    print(f"\nat {options.height}×{options.width}                       GFLOP        ms")
    for name in jobs:
        print(f"  {name:<24}{counted[name] / 1e9:10.3f}{timed[name]:10.1f}")
    print(f"  left / all-pairs      {flop_share:10.1%}{time_share:10.1%}")
    print(f"  at most               {FLOP_SHARE:10.1%}{TIME_SHARE:10.1%}")
    return 0 if flop_share <= FLOP_SHARE and time_share <= TIME_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())

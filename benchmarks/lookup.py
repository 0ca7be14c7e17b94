"""Time and memory of the lookups, with the bounds they must keep.

    python benchmarks/lookup.py

Prints one table and exits with 1 if a bound is missed. Times are medians of interleaved runs on
two CPU threads, so that whatever else the machine does falls on all rows alike; memory is the
growth of a fresh process, from its size with the features built to its peak.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume import AllPairs, OnDemand, pixel_grid

CHANNELS, LEVELS, RADIUS = 256, 4, 4
SCALE = CHANNELS**-0.5
SMALL = (55, 128)
LARGE = (136, 240)
MIB = 2**20
LEAST_SPEEDUP = 1.3
MOST_EXTRA_MIB = 400


def inputs(h: int, w: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, and coords of a smooth flow with some noise, some of it out of view."""
    torch.manual_seed(0)
    f1, f2 = torch.randn(2, 1, CHANNELS, h, w)
    smooth = F.interpolate(6 * torch.randn(1, 2, 5, 7), size=(h, w), mode="bicubic")
    return f1, f2, pixel_grid(h, w) + smooth + 0.5 * torch.randn(1, 2, h, w)


def sampled_build(f1: Tensor, f2: Tensor) -> list[Tensor]:
    """The volume as maps (b·h·w, 1, h, w), and its pooled levels."""
    b, c, h, w = f1.shape
    volume = SCALE * (f1.view(b, c, h * w).transpose(1, 2) @ f2.view(b, c, h * w))
    pyramid = [volume.reshape(b * h * w, 1, h, w)]
    for _ in range(LEVELS - 1):
        pyramid.append(F.avg_pool2d(pyramid[-1], 2))
    return pyramid


def sampled_lookup(pyramid: list[Tensor], coords: Tensor) -> Tensor:
    """The usual way: one grid_sample a level, a bilinear read for every offset."""
    b, _, h, w = coords.shape
    steps = torch.arange(-RADIUS, RADIUS + 1, dtype=coords.dtype)
    offsets = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1)
    centres = coords.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2)
    out = []
    for i, level in enumerate(pyramid):
        x, y = (centres / 2**i + offsets).unbind(-1)
        h2, w2 = level.shape[-2:]
        grid = torch.stack((2 * x / (w2 - 1) - 1, 2 * y / (h2 - 1) - 1), dim=-1)
        out.append(F.grid_sample(level, grid, align_corners=True).view(b, h, w, -1))
    return torch.cat(out, dim=-1).permute(0, 3, 1, 2).contiguous()


def medians(rows: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each row, all rows run in turn `repeats` times."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    for repeat in range(repeats + 2):
        for name, run in rows.items():
            start = time.perf_counter()
            run()
            if repeat >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: sorted(spent)[len(spent) // 2] for name, spent in times.items()}


def compare_speed(repeats: int = 41) -> float:
    """Prints the table of times; returns how many times as fast our lookup is as grid_sample's."""
    f1, f2, coords = inputs(*SMALL)
    ours = AllPairs(LEVELS, RADIUS, SCALE)
    chunked = OnDemand(LEVELS, RADIUS, SCALE)
    state, pyramid, features = ours.build(f1, f2), sampled_build(f1, f2), chunked.build(f1, f2)
    seconds = medians(
        {
            "grid_sample": lambda: sampled_lookup(pyramid, coords),
            "allpairs": lambda: ours.lookup(state, coords),
        },
        repeats,
    )
    slow = medians(
        {
            "grid_sample build": lambda: sampled_build(f1, f2),
            "allpairs build": lambda: ours.build(f1, f2),
            "ondemand": lambda: chunked.lookup(features, coords),
        },
        3,
    )
    print(f"{SMALL[0]}×{SMALL[1]}, c={CHANNELS}, {LEVELS} levels, radius {RADIUS}, two threads")
    for name, spent in {**seconds, **slow}.items():
        print(f"  {name:<20} {1e3 * spent:9.2f} ms")
    return seconds["grid_sample"] / seconds["allpairs"]


def extra_memory() -> None:
    """Prints the growth in MiB of this process over one on-demand lookup at the large size."""
    torch.set_num_threads(2)
    f1, f2, coords = inputs(*LARGE)
    chunked = OnDemand(LEVELS, RADIUS, SCALE)
    state = chunked.build(f1, f2)
    # The kernel's high-water mark, set back to now: what the build needed for a moment is no part
    # of the lookup. (getrusage would count even the parent, whose peak a child inherits.)
    Path("/proc/self/clear_refs").write_text("5")
    before = high_water()
    start = time.perf_counter()
    with torch.no_grad():
        chunked.lookup(state, coords)
    spent = time.perf_counter() - start
    print((high_water() - before) / MIB, spent)


def high_water() -> int:
    """The most bytes this process has held since its mark was set back; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> int:
    """Both comparisons; 1 if a bound is missed."""
    torch.set_num_threads(2)
    with torch.no_grad():
        speedup = compare_speed()
    command = [sys.executable, __file__, "--extra-memory"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    extra, spent = (float(word) for word in text.split())
    h, w = LARGE
    volume = sum(h * w * (h >> i) * (w >> i) * 4 for i in range(LEVELS)) / MIB
    print(f"{h}×{w}: volume and pyramid {volume:.0f} MiB; on demand {extra:.0f} MiB, {spent:.1f} s")
    kept = [
        (f"allpairs {speedup:.2f} times as fast as grid_sample", speedup >= LEAST_SPEEDUP),
        (f"ondemand {extra:.0f} MiB at {h}×{w}", extra < MOST_EXTRA_MIB),
    ]
    print(f"bounds: at least {LEAST_SPEEDUP} times, under {MOST_EXTRA_MIB} MiB")
    for claim, holds in kept:
        print(f"  {'kept  ' if holds else 'MISSED'} {claim}")
    return 0 if all(holds for _, holds in kept) else 1


if __name__ == "__main__":
    if "--extra-memory" in sys.argv:
        extra_memory()
    else:
        sys.exit(main())

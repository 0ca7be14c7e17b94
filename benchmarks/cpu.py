"""RAFT on a CPU beside its authors' code: seconds a pair, where they go, and the difference in px.

    git clone https://github.com/princeton-vl/RAFT
    python benchmarks/cpu.py RAFT raft-sintel.pth frame1.png frame2.png [--threads 2] [--repeats 5]

Both networks have the same weights, ours with LCV at W = I. They take turns, and medians are shown. Each
part is timed in one more call: convolutions, building the volume, lookups, and the rest. Exits with 1
if ours is less than 1.6 times as fast.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import lcv
from lcv.models.archive import read_checkpoint
from lcv.provenance import provenance

LEAST = 1.6


def authors(folder: Path, weights: Path) -> tuple[torch.nn.Module, Any]:
    """The authors' network, and their class of the cost volume."""
    sys.path.insert(0, str(folder / "core"))
    from corr import CorrBlock  # type: ignore[import-not-found]
    from raft import RAFT  # type: ignore[import-not-found]

    class Options(argparse.Namespace):
        def __contains__(self, name: str) -> bool:
            return hasattr(self, name)

    options = Options(small=False, mixed_precision=False, alternate_corr=False, dropout=0)
    network = RAFT(options)
    network.load_state_dict(read_checkpoint(weights).state)
    return network.eval(), CorrBlock


class Clock:
    """Seconds by part; what a part calls counts for that part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inside = False

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted for the part."""

        def call(*given: Any, **named: Any) -> Any:
            if self.inside:
                return function(*given, **named)
            self.inside, start = True, time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.inside = False
                self.seconds[part] += time.perf_counter() - start

        return call

    @contextmanager
    def watching(self, parts: dict[str, tuple[Any, str]]) -> Iterator[None]:
        """Time functions while the block runs. parts: where each is found"""
        before = {place: getattr(*place) for place in parts.values()}
        try:
            for part, (owner, name) in parts.items():
                setattr(owner, name, self.timed(part, getattr(owner, name)))
            yield
        finally:
            for (owner, name), function in before.items():
                setattr(owner, name, function)


def shares(run: Callable[[], Tensor], build: tuple[Any, str], lookup: tuple[Any, str]) -> str:
    """Seconds of each part of one call, as a line."""
    clock = Clock()
    parts = {"volume": build, "lookups": lookup, "convolutions": (F, "conv2d")}
    with clock.watching(parts):
        start = time.perf_counter()
        run()
        whole = time.perf_counter() - start
    found = {part: clock.seconds[part] for part in ("convolutions", "volume", "lookups")}
    found["the rest"] = whole - sum(found.values())
    return ", ".join(f"{part} {seconds:.2f}" for part, seconds in found.items())


def padded(path: Path) -> Tensor:
    """A frame, (1, 3, h, w) in 0 … 255, its sides filled up to multiples of 8."""
    frame = torch.from_numpy(lcv.read_image(path)).permute(2, 0, 1)[None].float()
    height, width = frame.shape[2:]
    return F.pad(frame, (0, -width % 8, 0, -height % 8), mode="replicate")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a clone of the authors' repository")
    parser.add_argument("weights", type=Path, help="raft-sintel.pth, say")
    parser.add_argument("frames", type=Path, nargs=2)
    parser.add_argument("--iters", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    their_network, their_volume = authors(chosen.folder, chosen.weights)
    network = lcv.load("raft-large", weights=chosen.weights).eval()
    volume = type(network.cost_volume)
    frame1, frame2 = map(padded, chosen.frames)

    def theirs() -> Tensor:
        return their_network(frame1, frame2, iters=chosen.iters, test_mode=True)[1]

    def ours() -> Tensor:
        return network(frame1, frame2, iters=chosen.iters).flow

    times: dict[Callable[[], Tensor], list[float]] = {theirs: [], ours: []}
    with torch.inference_mode():
        distance = (theirs() - ours()).norm(dim=1)
        for _ in range(chosen.repeats):
            for run, seconds in times.items():
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
        parts = {
            theirs: shares(theirs, (their_volume, "__init__"), (their_volume, "__call__")),
            ours: shares(ours, (volume, "build"), (volume, "lookup")),
        }
    height, width = frame1.shape[2:]
    print(f"raft-large, {height}×{width}, {chosen.iters} iterations, {chosen.threads} threads")
    for run, seconds in times.items():
        each = " ".join(f"{s:.2f}" for s in seconds)
        print(f"{run.__name__:<7}{statistics.median(seconds):.2f} s ({each}): {parts[run]}")
    ratio = statistics.median(times[theirs]) / statistics.median(times[ours])
    print(f"{ratio:.2f} times as fast; flows differ by {distance.mean():.2g} px on average")
    print(provenance())
    return 0 if ratio >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())

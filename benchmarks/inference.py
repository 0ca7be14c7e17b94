"""RAFT's prediction on a GPU beside torchvision's, in one run.

    python benchmarks/inference.py [-o inference.json] [--compiled] [--quick]

Batch 1, our embedded weights (with LCV) and a procedural pair. Milliseconds are the median and the range
of 10 calls, frames on the device to flow on the device; MiB the most that the allocator held during the
first call and the timed ones, and what it reserved; px the mean and the 99th percentile of the
difference from our own float32. torchvision has random weights, on which time does not depend.
--compiled adds torchvision compiled in bf16, three minutes a size. Peers that do not import are left out.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

import lcv
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.models.fast import Prepared
from lcv.provenance import provenance

Call = Callable[[Tensor, Tensor], Tensor]


class Cell(NamedTuple):
    """One line: who, how, and what makes the call."""

    name: str
    make: Callable[[], Call]
    tf32: bool = False
    ours: bool = True


def ours(
    network: str, volume: str, iters: int, precision: str | None, folded: bool = False
) -> Cell:
    """Our network, plain or prepared in a precision."""

    def make() -> Call:
        model = lcv.load(network).eval().cuda()
        model = lcv.fold(model) if folded else model
        model = model.with_volume(volume)
        run: Any = model if precision in (None, "tf32") else Prepared(model, precision)
        return lambda a, b: run(a, b, iters=iters).flow

    how = {None: "plain float32", "tf32": "plain TF32"}.get(precision, f"prepared {precision}")
    how += ", folded" if folded else ""
    return Cell(f"lcv {network}, {volume}, {how}", make, precision == "tf32")


def theirs(network: str, iters: int, how: str) -> Cell:
    """torchvision's, as it is, with TF32, under bf16 autocast, or compiled."""

    def make() -> Call:
        from torchvision.models.optical_flow import raft_large, raft_small

        model = {"raft-large": raft_large, "raft-small": raft_small}[network]().eval().cuda()
        inner: Any = torch.compile(model) if how == "compiled bf16" else model
        half = "bf16" in how

        def call(a: Tensor, b: Tensor) -> Tensor:
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                return inner(a / 127.5 - 1, b / 127.5 - 1, num_flow_updates=iters)[-1]

        return call

    return Cell(f"torchvision {network}, {how}", make, how != "float32", ours=False)


def cells(network: str, iters: int, size: tuple[int, int], options: Any) -> Iterator[Cell]:
    """All lines of one size; at 4K only what fits."""
    huge = size[0] * size[1] > 4_000_000
    if not huge:
        yield ours(network, "all-pairs", iters, None)
        yield ours(network, "all-pairs", iters, "tf32")
        for precision in ("fp16", "bf16"):
            yield ours(network, "all-pairs", iters, precision)
        yield ours(network, "all-pairs", iters, "fp16", folded=True)
    yield ours(network, "on-demand", iters, None if huge else "fp16")
    if huge:
        yield ours(network, "on-demand", iters, "fp16")
    if huge or importlib.util.find_spec("torchvision") is None:
        return
    for how in ("float32", "TF32", "bf16", *(("compiled bf16",) if options.compiled else ())):
        yield theirs(network, iters, how)


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Products and convolutions in TF32, or not."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    yield
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


@torch.no_grad()
def measure(cell: Cell, frames: tuple[Tensor, Tensor], truth: Tensor | None) -> dict[str, Any]:
    """One line; an error takes the place of its numbers. `flow` is taken out by the caller."""
    gc.collect()
    torch.cuda.empty_cache()
    found: dict[str, Any] = {"name": cell.name}
    try:
        with tf32(cell.tf32):
            call = cell.make()
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            flow = call(*frames)
            torch.cuda.synchronize()
            found["first_s"] = time.perf_counter() - start
            for _ in range(2):
                call(*frames)
            times = []
            for _ in range(10):
                torch.cuda.synchronize()
                start = time.perf_counter()
                call(*frames)
                torch.cuda.synchronize()
                times.append(1e3 * (time.perf_counter() - start))
        found |= {"ms": median(times), "range": [min(times), max(times)]}
        found["peak_mib"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        found["reserved_mib"] = torch.cuda.max_memory_reserved() / 2**20
        if cell.ours:
            found["flow"] = flow.float().cpu()
            if truth is not None:
                off = (found["flow"] - truth).norm(dim=1).flatten()
                found["px"] = [float(off.mean()), float(off.kthvalue(int(0.99 * len(off))).values)]
    except Exception as error:  # lack of memory, above all; one line must not cost the others
        found["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    return found


def line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"  {row['name']:<52} {row['error']}"
    px = f"{row['px'][0]:8.4f} {row['px'][1]:8.4f}" if "px" in row else " " * 17
    return (
        f"  {row['name']:<52} {row['ms']:8.2f} ({row['range'][0]:.2f} to {row['range'][1]:.2f}) "
        f"{row['peak_mib']:7.0f} {row['reserved_mib']:7.0f} {px} {row['first_s']:6.1f}"
    )


def main() -> int:
    """All sizes; 1 if a line of ours fails or differs by 0.05 px or more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--compiled", action="store_true", help="torchvision compiled, too")
    parser.add_argument("--quick", action="store_true", help="the first size only")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/inference.py needs a CUDA device; `lcv bench` runs without")
        return 2
    sizes = [
        ("raft-large", (440, 1024), 32),
        ("raft-small", (440, 1024), 32),
        ("raft-large", (376, 1248), 24),
        ("raft-large", (1088, 1920), 20),
        ("raft-large", (2160, 3840), 20),
    ]
    results, good = [], True
    for network, size, iters in sizes[:1] if options.quick else sizes:
        batch = generate(TRAINING, 1, range(1), size, "cuda")
        frames = (batch.image1, batch.image2)
        print(f"{network}, {size[0]}×{size[1]}, {iters} iterations")
        print(f"  {'':<52} {'ms':>8} (range)  MiB, reserved, px mean, px 99 %, first call s")
        rows, truth = [], None
        for cell in cells(network, iters, size, options):
            row = measure(cell, frames, truth)
            flow = row.pop("flow", None)
            truth = flow if truth is None else truth
            rows.append(row)
            good &= not (cell.ours and "error" in row) and row.get("px", [0.0])[0] < 0.05
            print(line(row), flush=True)
        named = {row["name"]: row["ms"] for row in rows if "ms" in row}
        peer = named.get(f"torchvision {network}, TF32")
        if peer:
            print("  times as fast as torchvision with TF32:")
            for name, ms in named.items():
                print(f"    {peer / ms:6.2f}  {name}")
        results.append({"network": network, "size": size, "iters": iters, "rows": rows})
    if options.output:
        origin = provenance(device=torch.device("cuda"))
        text = json.dumps({"provenance": origin, "sizes": results}, indent=1)
        options.output.write_text(text, encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

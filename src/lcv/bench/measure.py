"""One job measured in this process: time, peak memory, and the distance in px from float32.

The frames are a procedural pair, the same for all at a size, repeated in a batch. The first call
gives the peak of memory and compiles what is to be compiled; the second warms up; those after it are
timed one by one, frames on the device to flow on the device, the cells of a job in turns.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from lcv.bench.calls import Call, make_call, tf32
from lcv.bench.cells import Cell, Job, Point
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.memory import give_back_freed, measured

LEAST = 3
"""Timed calls, however long they take."""
SMALL = 128
"""Pixels: the side of a frame that serves to load things."""
WARM = 1.0
"""Seconds: a first call longer than this needs no other to warm up."""


def measure(
    job: Job, folder: Path, device: torch.device, repeats: int, seconds: float
) -> list[dict[str, Any]]:
    """A row for each cell, ready for JSON: its numbers, or the error in their place.

    folder:  where frames and reference flows are kept between jobs
    repeats: timed calls of each cell, fewer if they take more than `seconds` together
    """
    ready: list[tuple[Cell, Call, dict[str, Any]]] = []
    rows: list[dict[str, Any]] = []
    for cell in job:
        row: dict[str, Any] = {}
        rows.append(row)
        try:
            with tf32(uses_tf32(cell)):
                ready.append((cell, _first_call(cell, row, folder, device), row))
        except Exception as error:  # one failing line must not cost the others
            _note(row, error)
    times: list[list[float]] = [[] for _ in ready]
    for _ in range(repeats):
        for (cell, call, row), taken in zip(ready, times, strict=True):
            if "error" in row or (len(taken) >= LEAST and sum(taken) > seconds):
                continue
            try:
                with tf32(uses_tf32(cell)):
                    taken.append(_timed(call, device)[0])
            except Exception as error:
                _note(row, error)
    for (_, _, row), taken in zip(ready, times, strict=True):
        if "error" not in row:
            row |= {"seconds": taken, "median_seconds": median(taken)}
    return rows


def uses_tf32(cell: Cell) -> bool:
    """A peer in bf16 may use TF32 for what autocast leaves in float32; ours does without."""
    return cell.precision == "tf32" or (cell.peer is not None and cell.precision == "bf16")


def _first_call(cell: Cell, row: dict[str, Any], folder: Path, device: torch.device) -> Call:
    frames = _frames(cell.point, folder, device)
    on_gpu = device.type == "cuda"
    if not on_gpu and cell.engine != "compiled":
        # Code and tables that libraries load at the first call are no part of the second one's peak.
        make_call(cell, tuple(frame[:1, :, :SMALL, :SMALL] for frame in frames)).run()
    give_back_freed(device)
    call = make_call(cell, frames)
    held = torch.cuda.memory_reserved(device) if on_gpu else 0
    with measured(device) as peak:
        row["first_seconds"], returned = _timed(call, device)
        if cell.engine == "prepared":
            _timed(call, device)  # the second call of a shape records its graph
    row["peak_bytes"] = peak[0] if peak else None
    row["reserved_bytes"] = torch.cuda.max_memory_reserved(device) - held if on_gpu else None
    flow = call.flow(returned).float().cpu()
    del returned
    row |= _distance(cell, flow, folder)
    if row["first_seconds"] < WARM or cell.engine != "plain":
        _timed(call, device)
    return call


def _timed(call: Call, device: torch.device) -> tuple[float, Any]:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    returned = call.run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start, returned


def _frames(point: Point, folder: Path, device: torch.device) -> tuple[Tensor, Tensor]:
    """(b, 3, h, w) each, 0 … 255, made once a size."""
    path = folder / f"frames-{point.height}x{point.width}.pt"
    if not path.exists():
        batch = generate(TRAINING, 1, range(1), (point.height, point.width), device)
        pair = torch.cat((batch.image1, batch.image2)).round().to(torch.uint8).cpu()
        torch.save(pair, path)
    pair = torch.load(path, weights_only=True).to(device).float()
    return pair[:1].repeat(point.batch, 1, 1, 1), pair[1:].repeat(point.batch, 1, 1, 1)


def _distance(cell: Cell, flow: Tensor, folder: Path) -> dict[str, float]:
    """Mean and 99th percentile of the distance from the reference, if there is one."""
    point, network = cell.point, "".join(c if c.isalnum() else "-" for c in cell.model)
    path = folder / f"{network}-{point.height}x{point.width}-{point.batch}-{point.iters}.pt"
    if cell.reference:
        torch.save(flow, path)
    elif cell.compared and path.exists():
        apart = (flow - torch.load(path, weights_only=True)).norm(dim=1).flatten()
        rank = max(1, int(0.99 * len(apart)))
        return {"px_mean": float(apart.mean()), "px_p99": float(apart.kthvalue(rank).values)}
    return {}


def _note(row: dict[str, Any], error: Exception) -> None:
    """Why there are no numbers, in one line."""
    row.clear()
    words = " ".join(str(error).split())
    row["error"] = f"{type(error).__name__}: {words}"[:300]
    row["out_of_memory"] = is_out_of_memory(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Of the GPU or of the host; torch has no class of its own for the latter."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)

"""What is compared: each network with and without LCV, at each size, with each way to hold costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, cast

import torch

from lcv.errors import ArgumentError, LcvError
from lcv.models.build import build
from lcv.models.factory import label_of
from lcv.models.types import FlowModel

FORMAT = "lcv bench 1"
KINDS = ("euclidean", "elliptical")
"""Without LCV and with it."""


@dataclass(frozen=True)
class Cell:
    """One thing to measure; `iters` is None for a network that does not iterate."""

    model: str
    inner_product: str
    strategy: str
    height: int
    width: int
    iters: int | None = 12
    repeats: int = 5
    device: str = "cpu"


def every_cell(
    models: Sequence[str], sizes: Sequence[tuple[int, int]], iters: int, repeats: int, device: str
) -> list[Cell]:
    """All of them, those that are compared beside each other; what cannot be measured is refused."""
    for what, given in (("model", models), ("size", sizes)):
        if not given:
            raise ArgumentError(f"bench: no {what} is given, wanted at least one")
    found = []
    for name in models:
        network = _network(name)
        least, iterates = network.least_side, network.defaults.iters is not None
        kinds = KINDS if _takes_w(name) else KINDS[:1]
        for height, width in sizes:
            if min(height, width) < least:
                raise ArgumentError(
                    f"size is {height}x{width}, but {name} needs at least {least}x{least}"
                )
            for strategy in network.volumes:
                for kind in kinds:
                    own = (height, width, iters if iterates else None, repeats, device)
                    found.append(Cell(name, kind, strategy, *own))
    return found


def bench(
    models: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    *,
    iters: int = 12,
    repeats: int = 5,
    device: str = "cpu",
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Every cell in a process of its own, one after the other; plain values of JSON.

    A cell that cannot be measured, for lack of memory say, has an `error` in place of its numbers.
    """
    rows, origin = [], None
    every = every_cell(models, sizes, iters, repeats, device)
    for done, cell in enumerate(every):
        if progress is not None:
            words = f"{label_of(cell.model)}, {cell.inner_product}, {cell.strategy}"
            progress(f"{words}, {cell.height}×{cell.width}", done, len(every))
        found = _measured(cell)
        origin = found.pop("provenance", None) or origin
        if "seconds" in found:
            found["median_seconds"] = median(found["seconds"])
        rows.append({**asdict(cell), "model": label_of(cell.model), **found})
    if origin is None:
        raise LcvError(f"bench: nothing could be measured; the first says: {rows[0]['error']}")
    return {"format": FORMAT, "provenance": origin, "rows": rows}


def _takes_w(name: str) -> bool:
    """Whether it is known where W goes: of a foreign network the user has to say."""
    try:
        with torch.random.fork_rng(devices=[]):
            build(name, "elliptical")
    except ArgumentError:
        return False
    return True


def _network(name: str) -> FlowModel:
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
        return cast(FlowModel, build(name, "euclidean"))


def _measured(cell: Cell) -> dict[str, Any]:
    command = [sys.executable, "-m", "lcv.bench.measure", json.dumps(asdict(cell))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        return {"error": lines[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found

"""How cost grows with size, batch and iterations: one of them at a time, the others at the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcv.bench.cells import Cell, Job, Offer, Point, table_jobs

SIZES = ((256, 256), (440, 1024), (1088, 1920), (2160, 3840))
BATCHES = (1, 8, 32)
ITERS = (1, 12, 32)
BASE = Point(440, 1024, 1, 12)


def base_of(
    sizes: Sequence[tuple[int, int]], batches: Sequence[int], iters: Sequence[int]
) -> Point:
    """Where the axes cross: at BASE, or at the first value given of an axis that does not hold it."""
    size = (BASE.height, BASE.width)
    return Point(
        *(size if size in sizes else sizes[0]),
        BASE.batch if BASE.batch in batches else batches[0],
        BASE.iters if BASE.iters in iters else iters[0],
    )


def points(
    sizes: Sequence[tuple[int, int]] = SIZES,
    batches: Sequence[int] = BATCHES,
    iters: Sequence[int] = ITERS,
) -> list[Point]:
    """Every point of the three axes once, little work first."""
    base = base_of(sizes, batches, iters)
    found = [replace(base, height=h, width=w) for h, w in sizes]
    found += [replace(base, batch=batch) for batch in batches]
    found += [replace(base, iters=count) for count in iters]

    def work(point: Point) -> int:
        return point.height * point.width * point.batch * (10 + (point.iters or 0))

    return sorted(dict.fromkeys(found), key=work)


def growth_jobs(offer: Offer, every: Sequence[Point], *, gpu: bool) -> list[Job]:
    """The best of ours and of the peers', a job each: prepared ones and TF32 on a GPU."""
    return [
        (replace(cell, reference=False),)
        for point in every
        for job in table_jobs(offer, point, gpu=gpu)
        for cell in job
        if _is_shown(cell, offer, gpu)
    ]


def _is_shown(cell: Cell, offer: Offer, gpu: bool) -> bool:
    if cell.peer is not None:
        return cell.precision in ("tf32", "bf16") or not gpu
    if cell.lcv != offer.lcv[0]:
        return False
    if not gpu:
        return True
    if cell.engine == "prepared":
        return cell.precision == offer.prepared[0]
    return cell.precision == "tf32"

"""The lookup without the volume: a chunk of points at a time, each level in the cheaper way.

A fine level is large and a window sees little of it, so the features under each window are
gathered and multiplied. A coarse level is small, so the chunk is multiplied with all of it, which
is a fast matrix product, and the piece of volume is read and thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.allpairs import mixing
from lcv.cost_volume.allpairs.packed import Layout, Windows, find_windows, make_layout, pack

# A level is coarse if it has at most so many pixels for each pixel of a window. On two CPU cores
# a gathered pixel costs about as much as 60 pixels of a matrix product.
_COARSE = 60


class Way(NamedTuple):
    """How some levels are looked up: from which one on, and by gathering or by a product."""

    layout: Layout
    first: int
    gathers: bool

    @property
    def levels(self) -> slice:
        """The levels it sees to."""
        return slice(self.first, self.first + self.layout.levels)


class Plan(NamedTuple):
    """One way, or two, that together see to all levels, and the memory they may take."""

    ways: tuple[Way, ...]
    max_bytes: int


def make_plan(h: int, w: int, *, levels: int, rx: int, ry: int, max_bytes: int) -> Plan:
    """How to look up in a map h×w."""
    most = _COARSE * (2 * rx + 2) * (2 * ry + 2)
    fine = 0
    while fine < levels and (h >> fine) * (w >> fine) > most:
        fine += 1
    ways = (
        Way(make_layout(h, w, levels=fine, rx=rx, ry=ry), 0, True),
        Way(make_layout(h >> fine, w >> fine, levels=levels - fine, rx=rx, ry=ry), fine, False),
    )
    return Plan(tuple(way for way in ways if way.layout.levels > 0), max_bytes)


def build(f1: Tensor, f2: Tensor, plan: Plan, *, scale: float) -> tuple[Tensor, ...]:
    """Points of frame 1 (b, h·w, c), then for each way its packed levels of f2 (b, total, c)."""
    features = [scale * f1.flatten(2)]
    for way in plan.ways:
        pooled = f2
        for _ in range(way.first):
            pooled = F.avg_pool2d(pooled, 2)
        features.append(pack(pooled, way.layout))
    return tuple(f.transpose(1, 2).contiguous() for f in features)


def lookup(features: tuple[Tensor, ...], coords: Tensor, plan: Plan) -> Tensor:
    """See `lcv.cost_volume.ondemand.OnDemand.lookup`; features as `build` gives them."""
    points, *packed = features
    if torch.is_grad_enabled() and any(t.requires_grad for t in (coords, *features)):
        out: Tensor = _Lookup.apply(coords, plan, points, *packed)  # type: ignore[no-untyped-call]
        return out
    return _read(coords, plan, points, packed)


def _read(coords: Tensor, plan: Plan, points: Tensor, packed: list[Tensor]) -> Tensor:
    b, _, h, w = coords.shape
    u, v = plan.ways[0].layout.window
    levels = plan.ways[-1].levels.stop
    out = points.new_empty(b, levels, u, v, h * w)
    x, y = mixing.as_points(coords)
    for frame, part, place in _chunks(points, plan, copies=1):
        for way, f2 in zip(plan.ways, packed, strict=True):
            windows = _windows(x[place], y[place], way)
            rows = _costs(points[frame, part], f2[frame], windows, way)
            costs = mixing.mix_rows(rows, windows, way.layout)  # (m, levels, v, u)
            out[frame, way.levels, :, :, part] = costs.permute(1, 3, 2, 0)
    return out.view(b, levels * u * v, h, w)


class _Lookup(torch.autograd.Function):
    """`_read` with its backward pass, which keeps no more than it does; README.md derives it."""

    @staticmethod
    def forward(ctx: Any, coords: Tensor, plan: Plan, points: Tensor, *packed: Tensor) -> Tensor:
        ctx.save_for_backward(coords, points, *packed)
        ctx.plan = plan
        return _read(coords, plan, points, list(packed))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        coords, points, *packed = ctx.saved_tensors
        plan: Plan = ctx.plan
        b, _, h, w = coords.shape
        u, v = plan.ways[0].layout.window
        grad = grad.reshape(b, -1, u, v, h * w)
        x, y = mixing.as_points(coords)
        grad_x, grad_y = torch.zeros_like(x), torch.zeros_like(y)
        grad_points = torch.zeros_like(points)
        grad_packed = [torch.zeros_like(f2) for f2 in packed]
        for frame, part, place in _chunks(points, plan, copies=3):
            for way, f2, sum2 in zip(plan.ways, packed, grad_packed, strict=True):
                here = points[frame, part]
                windows = _windows(x[place], y[place], way)
                by_window = grad[frame, way.levels, :, :, part].permute(3, 0, 2, 1)
                cells = mixing.unmix_rows(by_window, windows)
                push = _push_gathered if way.gathers else _push_product
                grad_points[frame, part] += push(
                    cells, here, f2[frame], sum2[frame], windows, way.layout
                )
                if ctx.needs_input_grad[0]:
                    rows = _costs(here, f2[frame], windows, way)
                    by_x, by_y = mixing.slopes(by_window, rows, windows, way.layout)
                    grad_x[place] += by_x / 2**way.first
                    grad_y[place] += by_y / 2**way.first
        by_point = torch.stack((grad_x, grad_y))
        grad_coords = by_point.view(2, b, h, w).transpose(0, 1).to(coords.dtype)
        return grad_coords, None, grad_points, *grad_packed


def _chunks(points: Tensor, plan: Plan, *, copies: int) -> Iterator[tuple[int, slice, slice]]:
    """Slices of points so small that the work on one fits max_bytes.

    Yields the frame of the batch, the slice of its points and their place among all points.
    copies: how many arrays of the size of the gathered features or pieces of volume are alive.
    """
    b, n, c = points.shape
    numbers = 0
    for way in plan.ways:
        cells = way.layout.levels * (2 * way.layout.ry + 2) * way.layout.k
        numbers += copies * (cells * c if way.gathers else way.layout.total) + 8 * cells
    step = max(1, plan.max_bytes // (numbers * points.element_size()))
    for frame in range(b):
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield frame, slice(start, stop), slice(frame * n + start, frame * n + stop)


def _windows(x: Tensor, y: Tensor, way: Way) -> Windows:
    return find_windows(x / 2**way.first, y / 2**way.first, way.layout)


def _costs(here: Tensor, packed: Tensor, windows: Windows, way: Way) -> Tensor:
    """Whole-pixel costs of the points here (m, c): (m, levels, v+1, u+1)."""
    if not way.gathers:
        return mixing.gather_rows(here @ packed.t(), windows, way.layout)
    seen = _gather_features(packed, windows, way.layout)
    return (here[:, None] @ seen.transpose(1, 2)).view(*windows.rows.shape, way.layout.k)


def _gather_features(packed: Tensor, windows: Windows, layout: Layout) -> Tensor:
    """The features under each cell of each window: packed (total, c) → (m, cells, c)."""
    c = packed.shape[1]
    runs = packed.reshape(-1).unfold(0, layout.k * c, c)
    return runs.index_select(0, windows.rows.flatten()).view(windows.rows.shape[0], -1, c)


def _push_gathered(
    cells: Tensor, here: Tensor, packed: Tensor, sum2: Tensor, windows: Windows, layout: Layout
) -> Tensor:
    """Adds the gradient of packed to sum2 and returns that of here, by gathered features."""
    flat = cells.flatten(1)  # (m, cells)
    index = windows.rows[..., None] + torch.arange(layout.k, device=cells.device)
    outer = flat[..., None] * here[:, None]  # (m, cells, c)
    sum2.index_add_(0, index.flatten(), outer.flatten(0, 1))
    return (flat[:, None] @ _gather_features(packed, windows, layout))[:, 0]


def _push_product(
    cells: Tensor, here: Tensor, packed: Tensor, sum2: Tensor, windows: Windows, layout: Layout
) -> Tensor:
    """The same for levels multiplied as a whole."""
    volume = mixing.scatter_rows(cells, windows, layout)  # (m, total)
    sum2.addmm_(volume.t(), here)
    return volume @ packed

"""Axis order, window order and pixel grids: the one place where they are decided.

flow    (b, 2, h, w)  channel 0 = x to the right, channel 1 = y down, in pixels of this tensor
coords  (b, 2, h, w)  absolute (x, y); pixel centres lie at integers
window  u x-offsets by v y-offsets, dx = i − (u−1)/2, dy = j − (v−1)/2

"x_outer" is the order of the paper, RAFT and VCN: x is the slow index, channel n = i·v + j.
"y_outer" is DDFlow's row-major order: y is the slow index, channel n = j·u + i.
Weights depend on the order, so it is never inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from lcv.errors import ArgumentError

ORDERS = ("x_outer", "y_outer")


class Settings(NamedTuple):
    """What a looked-up volume was built with."""

    levels: int
    rx: int
    ry: int
    scale: float
    backend: str


def pixel_grid(
    h: int, w: int, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    """The coords of every pixel: (2, h, w), [0, y, x] = x and [1, y, x] = y."""
    x = torch.arange(w, dtype=dtype or torch.float32, device=device)
    y = torch.arange(h, dtype=dtype or torch.float32, device=device)
    return torch.stack((x.expand(h, w), y[:, None].expand(h, w)))


def coords_from_flow(flow: Tensor) -> Tensor:
    """Where each pixel goes: pixel grid + flow, (b, 2, h, w) → (b, 2, h, w)."""
    h, w = flow.shape[-2:]
    return pixel_grid(h, w, dtype=flow.dtype, device=flow.device) + flow


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Within, products of float32 matrices on a GPU are computed in "ieee" or in "tf32"."""
    had = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = had


def exact_dtype(*tensors: Tensor) -> torch.dtype:
    """float64 if any of them is, else float32: half floats cannot tell one pixel from the next."""
    return torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32


def window_offsets(
    u: int,
    v: int,
    order: str = "x_outer",
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """The offsets (dx, dy) of a u×v window, one row a channel: (u·v, 2)."""
    u, v = check_window("window_offsets", (u, v))
    check_order("window_offsets", order)
    dx = torch.arange(u, dtype=dtype or torch.float32, device=device) - u // 2
    dy = torch.arange(v, dtype=dtype or torch.float32, device=device) - v // 2
    if order == "x_outer":
        return torch.stack((dx[:, None].expand(u, v), dy.expand(u, v)), -1).reshape(u * v, 2)
    return torch.stack((dx.expand(v, u), dy[:, None].expand(v, u)), -1).reshape(u * v, 2)


def check_window(function: str, window: tuple[int, int]) -> tuple[int, int]:
    """(u, v) if both are odd and positive, so that the window has a centre."""
    if len(window) != 2:
        raise ArgumentError(f"{function}: window is {window!r}, wanted (u, v), both odd")
    for name, size in zip("uv", window, strict=True):
        if not isinstance(size, int) or size < 1 or size % 2 == 0:
            raise ArgumentError(
                f"{function}: window has {name}={size}, wanted an odd number of at least 1; "
                f"a radius r makes a window of 2r+1"
            )
    return window


def check_order(function: str, order: str) -> None:
    """Refuses a window order that is not one of ours."""
    if order not in ORDERS:
        raise ArgumentError(f"{function}: order is {order!r}, wanted one of {', '.join(ORDERS)}")


def check_radius(function: str, radius: int | tuple[int, int]) -> tuple[int, int]:
    """(rx, ry) from one radius or from two."""
    pair = radius if isinstance(radius, tuple) else (radius, radius)
    if len(pair) != 2 or not all(isinstance(r, int) and r >= 0 for r in pair):
        raise ArgumentError(
            f"{function}: radius is {radius!r}, wanted an integer of at least 0, or (rx, ry)"
        )
    return pair


def check_levels(function: str, levels: int) -> int:
    """The number of pyramid levels, if it is one."""
    if not isinstance(levels, int) or levels < 1:
        raise ArgumentError(f"{function}: levels is {levels!r}, wanted an integer of at least 1")
    return levels


def check_pyramid(function: str, levels: int, h: int, w: int) -> None:
    """Refuses a map of which the coarsest level would be empty."""
    least = 2 ** (levels - 1)
    if h < least or w < least:
        raise ArgumentError(
            f"{function}: {levels} levels halve the map {levels - 1} times, which needs at least "
            f"{least}×{least}, but f2 is h={h}, w={w}; pad the images or ask for fewer levels"
        )


def check_lookup(
    function: str,
    coords: tuple[int, ...],
    built_from: tuple[int, int, int],
    built_with: Settings,
    settings: Settings,
) -> None:
    """Refuses coords of another size, or settings other than those of the state looked up in.

    coords: their shape; built_from: (b, h, w) of the maps
    """
    b, h, w = built_from
    if coords != (b, 2, h, w):
        raise ArgumentError(
            f"{function}: coords {tuple(coords)} do not fit a state built from maps with "
            f"b={b}, h={h}, w={w}; wanted ({b}, 2, {h}, {w})"
        )
    if built_with != settings:
        raise ArgumentError(
            f"{function}: the state was built with {built_with}, but this object has "
            f"{settings}; build and look up with the same settings"
        )

"""The all-pairs volume, built by one product and read a window row at a time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.allpairs import mixing
from lcv.cost_volume.allpairs.packed import Layout, find_windows, pack


def build(f1: Tensor, f2: Tensor, layout: Layout, *, scale: float) -> Tensor:
    """The packed volume, (b·h·w, total): row n holds all costs of pixel n of frame 1.

    Pooling is linear, so pooling f2 before the product equals pooling the volume after it, and
    the pyramid comes out of the same product as the volume.
    """
    points, packed = scale * f1, pack(f2, layout)
    if _as_convolution(points, packed):
        last = points.contiguous(memory_format=torch.channels_last)
        maps = F.conv2d(last, packed[0].T[:, :, None, None])
        return maps.permute(0, 2, 3, 1).reshape(-1, layout.total)
    return (points.flatten(2).transpose(1, 2) @ packed).flatten(0, 1)


def _as_convolution(points: Tensor, packed: Tensor) -> bool:
    """Whether to compute the product as a 1×1 convolution: one pair on a CPU, without gradients.

    It takes 0.6 of the time on an AMD processor, where MKL's matrix product is slow. With one thread
    torch gives both to MKL, so there is nothing to gain.
    """
    if torch.compiler.is_compiling() or not points.is_cpu or points.dtype != torch.float32:
        return False
    if torch.is_grad_enabled() and (points.requires_grad or packed.requires_grad):
        return False
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and len(points) == 1 and torch.get_num_threads() > 1


def lookup(volume: Tensor, coords: Tensor, layout: Layout) -> Tensor:
    """See `lcv.cost_volume.allpairs.AllPairs.lookup`; volume as `build` gives it."""
    if torch.is_grad_enabled() and (volume.requires_grad or coords.requires_grad):
        out: Tensor = _Lookup.apply(volume, coords, layout)  # type: ignore[no-untyped-call]
        return out
    return _read(volume, coords, layout)


def _read(volume: Tensor, coords: Tensor, layout: Layout) -> Tensor:
    b, _, h, w = coords.shape
    x, y = mixing.as_points(coords)
    windows = find_windows(x, y, layout)
    rows = mixing.gather_rows(volume, windows, layout)
    return mixing.as_channels(mixing.mix_rows(rows, windows, layout), b, h, w)


class _Lookup(torch.autograd.Function):
    """`_read` with its backward pass written out.

    Left to autograd, the gradient of an overlapping view would be k times the volume.
    """

    @staticmethod
    def forward(ctx: Any, volume: Tensor, coords: Tensor, layout: Layout) -> Tensor:
        ctx.save_for_backward(volume, coords)
        ctx.layout = layout
        return _read(volume, coords, layout)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        volume, coords = ctx.saved_tensors
        layout: Layout = ctx.layout
        b, _, h, w = coords.shape
        x, y = mixing.as_points(coords)
        windows = find_windows(x, y, layout)
        by_window = mixing.from_channels(grad, layout)
        grad_volume = grad_coords = None
        if ctx.needs_input_grad[0]:
            rows = mixing.unmix_rows(by_window, windows)
            grad_volume = mixing.scatter_rows(rows, windows, layout)
        if ctx.needs_input_grad[1]:
            rows = mixing.gather_rows(volume, windows, layout)
            by_point = torch.stack(mixing.slopes(by_window, rows, windows, layout))
            grad_coords = by_point.view(2, b, h, w).transpose(0, 1).to(coords.dtype)
        return grad_volume, grad_coords, None

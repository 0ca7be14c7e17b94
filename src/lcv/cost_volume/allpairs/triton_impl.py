"""The all-pairs volume by one product, its windows read and their gradients added by kernels.

RAFT looks a volume up a dozen times, and each lookup touches 400 of a point's thousands of costs.
If every lookup had a gradient of the volume's size, most of the backward pass would be adding
zeros. So the lookups of one volume form a chain: each hands the volume on to the next, and on the
way back the gradient, one buffer, passes from the last to the first, each adding its windows to it.
A point's windows are its own, so nothing is added atomically and results do not vary.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from lcv.cost_volume.allpairs.triton_windows import add_windows, dense, read_windows, slopes
from lcv.cost_volume.conventions import exact_dtype, float32_products

# Rows of the volume begin at multiples of 16 bytes, as fast products want.
_MULTIPLE = 8


class Volume:
    """What is looked up: costs (b·h·w, total), as the lookup before handed them on."""

    def __init__(self, costs: Tensor) -> None:
        self.costs = costs


def build(f1: Tensor, f2: Tensor, *, levels: int, scale: float) -> Volume:
    """A row a point: the maps of all levels one after the other, then zeros up to the multiple.

    Pooling is linear, so pooling f2 before the product equals pooling the volume after it.
    Operations: 2·c·total a point; bytes written: total numbers a point. At c = 256 that is 256
    operations a byte in half precision, about what the chip's ratio is: neither limit is idle.
    """
    points = (scale * f1).flatten(2).transpose(1, 2)
    packed = pack(f2, levels=levels)
    costs: Tensor
    if torch.compiler.is_compiling():
        costs = points @ packed.transpose(1, 2)
    else:
        costs = _Product.apply(points, packed)  # type: ignore[no-untyped-call]
    return Volume(costs.flatten(0, 1))


class _Product(torch.autograd.Function):
    """a bᵀ; backwards in the precision (float32 or TF32) that was set when it was computed."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.precision = torch.backends.cuda.matmul.fp32_precision
        return a @ b.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        with float32_products(ctx.precision):
            of_a = grad @ b if ctx.needs_input_grad[0] else None
            of_b = grad.transpose(1, 2) @ a if ctx.needs_input_grad[1] else None
        return of_a, of_b


def pack(f2: Tensor, *, levels: int) -> Tensor:
    """f2 (b, c, h, w), averaged 2×2 from level to level: (b, total, c)."""
    maps, pooled = [], f2.to(exact_dtype(f2))
    for level in range(levels):
        if level > 0:
            pooled = F.avg_pool2d(pooled, 2)
        maps.append(pooled.to(f2.dtype).flatten(2).transpose(1, 2))
    rest = -sum(each.shape[1] for each in maps) % _MULTIPLE
    maps.append(f2.new_zeros(f2.shape[0], rest, f2.shape[1]))
    return torch.cat(maps, dim=1)


def lookup(volume: Volume, coords: Tensor, *, levels: int, rx: int, ry: int) -> Tensor:
    """See `lcv.cost_volume.allpairs.AllPairs.lookup`; volume as `build` gives it."""
    costs = volume.costs
    wanted = torch.is_grad_enabled() and (costs.requires_grad or coords.requires_grad)
    if wanted and not torch.compiler.is_compiling():
        out: Tensor
        out, volume.costs = _Chained.apply(costs, coords, levels, rx, ry)  # type: ignore[no-untyped-call]
        return out
    return lookup_op(costs, coords, levels, rx, ry)


@torch.library.custom_op("lcv::allpairs_lookup", mutates_args=())
def lookup_op(costs: Tensor, coords: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    """Windows of a volume, (b, levels·u·v, h, w); its gradient is of the volume's size."""
    out = empty_windows(costs, coords, levels, rx, ry)
    read_windows(costs, coords.contiguous(), out, levels=levels, rx=rx, ry=ry, every=True)
    return out


@lookup_op.register_fake
def _(costs: Tensor, coords: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    return empty_windows(costs, coords, levels, rx, ry)


def empty_windows(like: Tensor, coords: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    """Room for the windows around coords, (b, levels·u·v, h, w), channels last, as convolutions want."""
    b, _, h, w = coords.shape
    shape = (b, levels * (2 * rx + 1) * (2 * ry + 1), h, w)
    return torch.empty(
        shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last
    )


@torch.library.custom_op("lcv::allpairs_add", mutates_args=("total",))
def add_op(total: Tensor, coords: Tensor, grad: Tensor, levels: int, rx: int, ry: int) -> None:
    """Add the gradient of a lookup to that of its volume."""
    add_windows(total, coords.contiguous(), dense(grad), levels=levels, rx=rx, ry=ry, every=True)


@torch.library.custom_op("lcv::allpairs_slopes", mutates_args=())
def slopes_op(costs: Tensor, coords: Tensor, grad: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    """The gradient of a lookup's coords."""
    here = coords.contiguous()
    out = slopes(costs, here, dense(grad), levels=levels, rx=rx, ry=ry, every=True)
    return out.to(coords.dtype)


@slopes_op.register_fake
def _(costs: Tensor, coords: Tensor, grad: Tensor, levels: int, rx: int, ry: int) -> Tensor:
    return torch.empty_like(coords, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    costs, coords, *ctx.settings = inputs
    ctx.save_for_backward(costs, coords)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    costs, coords = ctx.saved_tensors
    total = of_coords = None
    if ctx.needs_input_grad[0]:
        total = torch.zeros_like(costs)
        add_op(total, coords, grad, *ctx.settings)
    if ctx.needs_input_grad[1]:
        of_coords = slopes_op(costs, coords, grad, *ctx.settings)
    return total, of_coords, None, None, None


lookup_op.register_autograd(_backward, setup_context=_save)


class _Chained(torch.autograd.Function):
    """A lookup that hands the volume on; the gradient of what it hands on is the buffer to add to.

    The buffer is changed in place. That is safe because nothing else reads it: what is handed on
    stays in a `Volume`, whose only reader is the next lookup.
    """

    @staticmethod
    def forward(
        ctx: Any, costs: Tensor, coords: Tensor, levels: int, rx: int, ry: int
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.settings = (levels, rx, ry)
        ctx.save_for_backward(costs, coords)
        handed = costs.view_as(costs)
        if not ctx.needs_input_grad[0]:
            ctx.mark_non_differentiable(handed)  # only coords are asked for: no buffer
        return lookup_op(costs, coords, levels, rx, ry), handed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, total: Tensor | None) -> tuple[Tensor | None, ...]:
        costs, coords = ctx.saved_tensors
        of_coords = None
        if grad is not None and ctx.needs_input_grad[0]:
            total = torch.zeros_like(costs) if total is None else total
            add_op(total, coords, grad, *ctx.settings)
        if grad is not None and ctx.needs_input_grad[1]:
            of_coords = slopes_op(costs, coords, grad, *ctx.settings)
        return total, of_coords, None, None, None

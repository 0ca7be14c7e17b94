"""What an operation would return, worked out from shapes alone.

torch can do this itself (its "meta" kernels), but the first such kernel loads torch's compiler:
seconds, and 85 MB that a memory planner would have to plan for. The rules below cover what the
networks use; for anything else `shape_of` falls back to torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

META = torch.device("meta")
TRUTHS = {"eq", "ne", "lt", "le", "gt", "ge", "bitwise_not", "logical_not", "isfinite"}


def shape_of(func: Any, args: Any, kwargs: Any) -> Any:
    """func(*args, **kwargs) for meta tensors, without computing anything."""
    if func.is_view:
        return func(*args, **kwargs)
    name = func._schema.name.removeprefix("aten::")
    if name.endswith("_") and not name.startswith("_"):
        return args[0]
    rule = RULES.get(name)
    if rule is not None:
        return rule(*args, **kwargs)
    if torch.Tag.pointwise in func.tags:
        return _pointwise(name, args)
    return func(*args, **kwargs)


def _empty(size: Any, dtype: torch.dtype) -> Tensor:
    return torch.empty([int(side) for side in size], dtype=dtype, device=META)


def _pointwise(name: str, args: Any) -> Tensor:
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    shape = np.broadcast_shapes(*(tuple(tensor.shape) for tensor in tensors))
    if name.split(".")[0] in TRUTHS:
        dtype = torch.bool
    else:
        values = tensors[1:] if name == "where" else args
        dtype = _promoted([each for each in values if isinstance(each, Tensor | float)])
    like = next((tensor for tensor in tensors if tensor.shape == shape), None)
    return _empty(shape, dtype) if like is None else _in_order(like, dtype)


def _in_order(like: Tensor, dtype: torch.dtype) -> Tensor:
    """A result takes over the order of its operand's axes: permuted in, permuted out."""
    if like.is_contiguous():
        return _empty(like.shape, dtype)
    strides = like.stride()
    order = sorted(range(like.dim()), key=lambda axis: -strides[axis])
    return torch.empty_permuted(like.shape, order, dtype=dtype, device=META)


def _promoted(values: list[Any]) -> torch.dtype:
    dtype = values[0].dtype
    for value in values[1:]:
        dtype = torch.result_type(torch.empty((1,), dtype=dtype, device=META), value)
    return dtype


def _like(x: Tensor, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    return _empty(x.shape, dtype or x.dtype)


def _clone(x: Tensor, memory_format: torch.memory_format | None = None) -> Tensor:
    if memory_format in (None, torch.preserve_format):
        return _in_order(x, x.dtype)
    return _empty(x.shape, x.dtype)


def _to_copy(x: Tensor, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return _in_order(x, dtype or x.dtype)


def _cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
    return _empty(shape, _promoted(tensors))


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    shape.insert(dim if dim >= 0 else dim + len(shape) + 1, len(tensors))
    return _empty(shape, _promoted(tensors))


def _pad(x: Tensor, padding: list[int], *_: Any) -> Tensor:
    shape = list(x.shape)
    for i in range(len(padding) // 2):
        shape[-1 - i] += padding[2 * i] + padding[2 * i + 1]
    return _empty(shape, x.dtype)


def _convolution(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, *_: Any
) -> Tensor:
    kernels = weight.shape[2:]
    sides = [
        (x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel - 1) - 1) // stride[i] + 1
        for i, kernel in enumerate(kernels)
    ]
    return _empty((x.shape[0], weight.shape[0], *sides), x.dtype)


def _batch_norm(x: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(x.shape, x.dtype), _empty((0,), x.dtype), _empty((0,), x.dtype)


def _pool(x: Tensor, kernel: Any, stride: Any = (), padding: Any = (0, 0), *_: Any) -> Tensor:
    pairs = [list(each) * 2 if len(each) == 1 else each for each in (kernel, stride or kernel)]
    padding = list(padding) * 2 if len(padding) == 1 else padding
    sides = [(x.shape[2 + i] + 2 * padding[i] - pairs[0][i]) // pairs[1][i] + 1 for i in range(2)]
    return _empty((*x.shape[:2], *sides), x.dtype)


def _max_pool(x: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    out = _pool(x, *args)
    return out, _empty(out.shape, torch.int64)


def _upsample(x: Tensor, size: Any, *_: Any) -> Tensor:
    return _empty((*x.shape[:2], *size), x.dtype)


def _matrices(a: Tensor, b: Tensor) -> Tensor:
    return _empty((*a.shape[:-1], b.shape[-1]), a.dtype)


def _index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    shape = list(x.shape)
    shape[dim] = index.shape[0]
    return _empty(shape, x.dtype)


def _gather(x: Tensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    return _empty(index.shape, x.dtype)


def _im2col(x: Tensor, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    sides = [
        (x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i in range(2)
    ]
    return _empty((x.shape[0], x.shape[1] * kernel[0] * kernel[1], sides[0] * sides[1]), x.dtype)


def _grid_sample(x: Tensor, grid: Tensor, *_: Any) -> Tensor:
    return _empty((*x.shape[:2], *grid.shape[1:3]), x.dtype)


def _reduced(x: Tensor, dim: Any = None, keep: bool = False, **kwargs: Any) -> Tensor:
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = {axis % x.dim() for axis in dims}
    shape = [
        1 if axis in axes else side for axis, side in enumerate(x.shape) if keep or axis not in axes
    ]
    return _empty(shape, kwargs.get("dtype") or x.dtype)


def _argmax(x: Tensor, dim: int, keep: bool = False) -> Tensor:
    return _reduced(x, dim, keep, dtype=torch.int64)


def _norm(x: Tensor, order: Any = 2, dim: Any = (), keep: bool = False, **_: Any) -> Tensor:
    return _reduced(x, dim, keep)


def _sized(x: Any, size: Any = None, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """`empty(size)`, and `x.new_empty(size)` or `x.new_zeros(size)`."""
    if isinstance(x, Tensor):
        return _empty(size, dtype or x.dtype)
    return _empty(x, dtype or torch.get_default_dtype())


def _arange(end: Any, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    return _empty((end,), dtype or torch.int64)


def _eye(n: int, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    return _empty((n, n), dtype or torch.get_default_dtype())


def _scalar(value: Any, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return _empty((), dtype or torch.get_default_dtype())


def _triangle(rows: int, columns: int, offset: int = 0, **_: Any) -> Tensor:
    return _empty((2, sum(max(0, columns - max(0, i + offset)) for i in range(rows))), torch.int64)


def _solve(a: Tensor, b: Tensor, **_: Any) -> tuple[Tensor, ...]:
    # LAPACK's matrices are column by column.
    x, lu = (_empty(m.mT.shape, m.dtype).mT for m in (b, a))
    pivots, info = (_empty(size, torch.int32) for size in (a.shape[:-1], a.shape[:-2]))
    return x, lu, pivots, info


RULES: dict[str, Callable[..., Any]] = {
    "_linalg_solve_ex": _solve,
    "_adaptive_avg_pool2d": _upsample,
    "_softmax": _like,
    "_to_copy": _to_copy,
    "_unsafe_view": lambda x, size: x.view(size),
    "arange": _arange,
    "argmax": _argmax,
    "avg_pool2d": _pool,
    "bmm": _matrices,
    "cat": _cat,
    "clone": _clone,
    "constant_pad_nd": _pad,
    "convolution": _convolution,
    "cumsum": _like,
    "empty": _sized,
    "eye": _eye,
    "flip": _like,
    "floor_divide": lambda *args: _pointwise("floor_divide", args),
    "full_like": _like,
    "gather": _gather,
    "grid_sampler_2d": _grid_sample,
    "im2col": _im2col,
    "index_put": _like,
    "index_select": _index_select,
    "linalg_vector_norm": _norm,
    "max_pool2d_with_indices": _max_pool,
    "mean": _reduced,
    "mm": _matrices,
    "native_batch_norm": _batch_norm,
    "new_empty": _sized,
    "new_zeros": _sized,
    "ones": _sized,
    "ones_like": _like,
    "replication_pad2d": _pad,
    "scalar_tensor": _scalar,
    "stack": _stack,
    "sum": _reduced,
    "triu_indices": _triangle,
    "upsample_bilinear2d": _upsample,
    "upsample_trilinear3d": _upsample,
    "zeros": _sized,
}

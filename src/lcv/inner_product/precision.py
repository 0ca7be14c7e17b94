"""The precision in which W is built: float32 or better, whatever autocast says."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Tensor])


def at_least_float32(x: Tensor) -> Tensor:
    """x itself, or in float32 if its own type holds fewer digits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def full_precision(function: Function) -> Function:
    """Run a function of tensors with autocast off and those tensors in float32 or better.

    Under bf16 autocast the two products of PᵀΛP alone would move W by up to 8e-3 from I where
    it should be exact.
    """

    @wraps(function)
    def run(*tensors: Tensor, **options: Any) -> Tensor:
        with torch.autocast(tensors[0].device.type, enabled=False):
            return function(*map(at_least_float32, tensors), **options)

    return cast(Function, run)

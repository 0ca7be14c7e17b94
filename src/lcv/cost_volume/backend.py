"""Which implementation of an operator runs, and why one cannot.

"reference" is the slow truth, "torch" the fast one on any device, "triton" the kernels for GPUs,
"auto" the fastest of those that this operator has and this machine can run. The choice is an
argument: no environment variable and no global changes it.
"""

from __future__ import annotations

import functools
import importlib.util
import logging

import torch
from torch import Tensor

from lcv.errors import BackendError

BACKENDS = ("auto", "reference", "torch", "triton")
HAS_TRITON = importlib.util.find_spec("triton") is not None
logger = logging.getLogger("lcv")


def choose_backend(
    function: str, backend: str, like: Tensor | None = None, no_kernel: str = ""
) -> str:
    """The name of the implementation to run: "reference", "torch" or "triton".

    function: who asks; it opens every message. like: a tensor of the call; without one only the
    name is checked. no_kernel: why the operator has no kernel for this call, if it has none.
    Raises BackendError where the one asked for is unknown or unavailable.
    """
    if backend not in BACKENDS:
        raise BackendError(
            f"{function}: unknown backend {backend!r}; known are {', '.join(BACKENDS)}"
        )
    if backend == "triton":
        why = no_kernel or _why_not(like)
        if why:
            raise BackendError(
                f'{function}: backend "triton" is unavailable: {why}; use "torch" or "auto"'
            )
    if backend != "auto":
        return backend
    if like is None or like.device.type != "cuda":
        return "torch"
    why = no_kernel or _why_not(like)
    chosen = "torch" if why else "triton"
    if not torch.compiler.is_compiling():
        _say(function, str(like.device), chosen, why)
    return chosen


def _why_not(like: Tensor | None) -> str:
    """Why kernels cannot run on such a tensor; empty if they can."""
    if not HAS_TRITON:
        return "Triton is not installed"
    if like is None:
        return ""
    if like.dtype == torch.float64:
        return "the kernels sum in float32, and the tensors are float64"
    tracing = torch.compiler.is_compiling()
    if like.device.type != "cuda" and not tracing and not interpreting():
        return f"the tensors are on {like.device}, wanted a CUDA device"
    return ""


def interpreting() -> bool:
    """Whether kernels run in Triton's interpreter, which serves tests and needs no GPU."""
    import triton

    return bool(triton.knobs.runtime.interpret)


@functools.lru_cache(maxsize=64)
def _say(function: str, device: str, chosen: str, why: str) -> None:
    """Once for each operator and device."""
    logger.info("%s on %s runs by %s%s", function, device, chosen, f": {why}" if why else "")

"""Which implementation of an operator runs, and why one cannot.

"reference" is the slow truth, "torch" the fast one on any device, "triton" the kernels for GPUs,
"auto" the fastest of those that this operator has and this machine can run. The choice is an
argument: no environment variable and no global changes it.
"""

from __future__ import annotations

from lcv.errors import BackendError

BACKENDS = ("auto", "reference", "torch", "triton")


def choose_backend(function: str, backend: str) -> str:
    """The name of the implementation to run: "reference" or "torch".

    Raises BackendError where the one asked for is unknown or unavailable.
    """
    if backend == "auto":
        return "torch"
    if backend == "triton":
        raise BackendError(
            f'{function}: backend "triton" is unavailable: this operator has no Triton kernel; '
            f'use "torch" or "auto"'
        )
    if backend not in BACKENDS:
        raise BackendError(
            f"{function}: unknown backend {backend!r}; known are {', '.join(BACKENDS)}"
        )
    return backend

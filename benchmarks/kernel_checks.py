"""Every kernel against its reference, forwards and backwards, in every dtype.

    TRITON_INTERPRET=1 python benchmarks/kernel_checks.py        # small, without a GPU
    python benchmarks/kernel_checks.py                           # on CUDA

Prints one line of JSON: for each kernel, shape, dtype and result the worst error and what is allowed.
A kernel may err at most twice as much as the same computed by torch in the same dtype, both measured
against the reference in float64, plus one unit in the last place of the largest number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lcv.cost_volume import AllPairs, OnDemand, local_cost_volume, projected_cost_volume

Run = Callable[..., list[Tensor]]
"""(backend, inputs) → results."""


class Case(NamedTuple):
    """run: (backend, *inputs) → results; exact: inputs that keep float32 in half precision."""

    name: str
    run: Run
    inputs: list[Tensor]
    exact: tuple[int, ...] = ()


def with_gradients(run: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """The result, and the gradients of all inputs for one direction of it."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    out = run(*leaves)
    slope = torch.linspace(-1, 1, out.numel(), dtype=torch.float64, device=out.device)
    slope = slope.view(out.shape).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, leaves, slope)]


def coords_near(b: int, h: int, w: int) -> Tensor:
    """Points in and around the map, clear of whole numbers at four levels."""
    spread = torch.tensor([w + 8.0, h + 8.0]).view(2, 1, 1)
    whole = (torch.rand(b, 2, h, w) * spread - 4).div(8).floor() * 8
    return whole + 8 * (0.05 + 0.9 * torch.rand(b, 2, h, w))


def lookups(kind: type, levels: int, radius: tuple[int, int], scale: float) -> Run:
    """Three lookups of one volume, as RAFT's iterations make them, and a fourth that nobody uses."""

    def run(backend: str, *inputs: Tensor) -> list[Tensor]:
        volume = kind(levels, radius, scale, backend=backend)

        def look(f1: Tensor, f2: Tensor, coords: Tensor) -> Tensor:
            state = volume.build(f1, f2)
            moved = [coords + 0.03125 * step for step in range(4)]
            found = [volume.lookup(state, each) for each in moved]
            return torch.cat(found[:2] + found[3:])

        return with_gradients(look, list(inputs))

    return run


def local(window: tuple[int, int], order: str, scale: float) -> Run:
    """The window volume, channels summed."""

    def run(backend: str, *inputs: Tensor) -> list[Tensor]:
        return with_gradients(
            lambda f1, f2: local_cost_volume(
                f1, f2, window, scale=scale, order=order, backend=backend
            ),
            list(inputs),
        )

    return run


def projected(window: tuple[int, int]) -> Run:
    """The window volume, activated and mixed."""

    def run(backend: str, *inputs: Tensor) -> list[Tensor]:
        return with_gradients(
            lambda f1, f2, weight: projected_cost_volume(
                f1, f2, weight, window, slope=0.1, backend=backend
            ),
            list(inputs),
        )

    return run


def cases(small: bool) -> Iterator[Case]:
    """Odd shapes; small ones for the interpreter."""
    torch.manual_seed(0)
    looked = [((2, 5, 5, 9), 3, (2, 1)), ((1, 3, 2, 3), 1, (0, 0))]
    looked += [] if small else [((2, 256, 47, 63), 4, (4, 4)), ((1, 100, 17, 130), 4, (3, 3))]
    for (b, c, h, w), levels, radius in looked:
        inputs = [*torch.randn(2, b, c, h, w), coords_near(b, h, w)]
        named = f"{b}×{c}×{h}×{w}, {levels} levels, radius {radius}"
        for kind in (AllPairs, OnDemand):
            yield Case(
                f"{kind.__name__} {named}", lookups(kind, levels, radius, c**-0.5), inputs, (2,)
            )
    seen = [((2, 5, 3, 19), (5, 3), "x_outer"), ((1, 20, 2, 17), (1, 3), "y_outer")]
    seen += [] if small else [((2, 192, 47, 63), (9, 9), "y_outer")]
    for (b, c, h, w), window, order in seen:
        named = f"{b}×{c}×{h}×{w}, window {window}, {order}"
        yield Case(
            f"local {named}", local(window, order, c**-0.5), list(torch.randn(2, b, c, h, w))
        )
    mixed = [((2, 5, 4, 19), 3, (3, 1)), ((1, 20, 3, 7), 17, (1, 3))]
    mixed += [] if small else [((2, 64, 47, 63), 16, (9, 9)), ((1, 100, 20, 33), 12, (9, 7))]
    for (b, c, h, w), o, window in mixed:
        named = f"{b}×{c}×{h}×{w} to {o}, window {window}"
        inputs = [*torch.randn(2, b, c, h, w), torch.randn(o, c) * c**-0.5]
        yield Case(f"projected {named}", projected(window), inputs)


def compare(case: Case, dtype: torch.dtype, device: str) -> dict[str, Any]:
    """Worst error and what is allowed, for each result."""
    given = [
        each.to(device) if i in case.exact else each.to(device, dtype)
        for i, each in enumerate(case.inputs)
    ]
    truth = case.run("reference", *(each.double() for each in given))
    plain = case.run("torch", *given)
    fast = case.run("triton", *given)
    results = []
    for f, p, t in zip(fast, plain, truth, strict=True):
        assert f.shape == t.shape, (case.name, f.shape, t.shape)
        largest = t.abs().max()
        allowed = 2 * (p - t).abs().max() + torch.finfo(f.dtype).eps * largest
        results.append([float((f - t).abs().max()), float(allowed)])
    return {"case": case.name, "dtype": str(dtype).removeprefix("torch."), "results": results}


def check(device: str) -> list[dict[str, Any]]:
    """All cases in all dtypes; on a CPU, which interprets, small shapes."""
    small = device == "cpu"
    if small:
        shrink_grids()
    found = []
    for number, case in enumerate(cases(small)):
        every: tuple[torch.dtype, ...] = (torch.float32, torch.float16, torch.bfloat16)
        if small:
            # The interpreter is slow, so a case has one dtype; and it multiplies no bf16 matrices.
            every = every[:2] if "AllPairs" not in case.name else every
            every = (every[number % len(every)],)
        for dtype in every:
            found.append(compare(case, dtype, device))
    return found


def shrink_grids() -> None:
    """Larger tiles, for the interpreter runs one program after the other."""
    from lcv.cost_volume.allpairs import triton_windows

    triton_windows.POINTS = 256


def bad(found: list[dict[str, Any]]) -> list[str]:
    """What errs more than it may, in words."""
    return [
        f"{row['case']}, {row['dtype']}, result {i}: error {error:.2e}, allowed {allowed:.2e}"
        for row in found
        for i, (error, allowed) in enumerate(row["results"])
        if not error <= allowed
    ]


def main() -> int:
    """Print what was found; 1 if a kernel errs."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    found = check(device)
    print(json.dumps(found))
    for line in bad(found):
        print(line, file=sys.stderr)
    return 1 if bad(found) else 0


if __name__ == "__main__":
    sys.exit(main())

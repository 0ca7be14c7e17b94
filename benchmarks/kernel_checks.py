"""Every kernel against its reference, forwards and backwards, in every dtype.

    TRITON_INTERPRET=1 python benchmarks/kernel_checks.py        # small, without a GPU
    python benchmarks/kernel_checks.py                           # on CUDA

Prints one line of JSON: for each kernel, shape, dtype and result the worst error and what is allowed.
A kernel may err at most twice as much as the same computed by torch in the same dtype, both measured
against the reference in float64, plus one unit in the last place of the largest number (of the half
float that a prepared network computes in, where its results are float32).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import lcv
from lcv.cost_volume import (
    AllPairs,
    OnDemand,
    local_cost_volume,
    pixel_grid,
    projected_cost_volume,
)
from lcv.cost_volume.allpairs import triton_windows
from lcv.models.raft import fused as steps
from lcv.models.raft import triton_fused, triton_norm, triton_upsample
from lcv.models.raft.upsample import convex_upsample

VOLUMES = ("all-pairs", "on-demand")
BY_LIBRARY = triton_fused.by_library

Run = Callable[..., list[Tensor]]


class Case(NamedTuple):
    """run: (backend, *inputs) → results; exact: inputs that keep float32 in half precision.

    half: whether the kernel is for half precision alone; its truth is then torch in float32.
    """

    name: str
    run: Run
    inputs: list[Tensor]
    exact: tuple[int, ...] = ()
    half: bool = False


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
    """Lookups of one volume, as RAFT's iterations make them; the second is used by nobody."""
    lookups_made = 3 if kind is AllPairs else 1  # only these hand their gradients on

    def run(backend: str, *inputs: Tensor) -> list[Tensor]:
        volume = kind(levels, radius, scale, backend=backend)

        def look(f1: Tensor, f2: Tensor, coords: Tensor) -> Tensor:
            state = volume.build(f1, f2)
            moved = [coords + 0.03125 * step for step in range(lookups_made)]
            found = [volume.lookup(state, each) for each in moved]
            return torch.cat(found[:1] + found[2:])

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


def upsampled(backend: str, *inputs: Tensor) -> list[Tensor]:
    """Convex upsampling; its torch form is its reference."""
    name = "torch" if backend == "reference" else backend
    return with_gradients(
        lambda flow, mask: convex_upsample(flow, mask, 0.25, backend=name), list(inputs)
    )


def normalised(backend: str, x: Tensor, rest: Tensor) -> list[Tensor]:
    """Instance norm, ReLU, and the residual sum."""
    found = []
    for norm, relu, beside in ((True, True, None), (True, True, rest), (False, False, rest)):
        if backend == "triton":
            found.append(triton_norm.normalise(x, norm=norm, relu=relu, rest=beside))
            continue
        y = F.instance_norm(x) if norm else x
        y = F.relu(y) if relu else y
        found.append(y if beside is None else F.relu(beside + y))
    return found


def fused(kernel: tuple[int, int], hidden: int, motion: int, library: bool) -> Run:
    """All steps of the update block, each after the other on the same buffers.

    library: its convolutions by cuDNN, only what follows them in the kernels
    """

    def run(backend: str, x: Tensor, flow: Tensor, *weights: Tensor) -> list[Tensor]:
        triton_fused.by_library = lambda *_: library
        dtype = torch.float32 if x.dtype == torch.float64 else x.dtype
        kernels = {"kernels": backend == "triton"}
        b, h, w, _ = x.shape
        make = lambda weight, **more: steps.make_layer(  # noqa: E731
            weight, weight.flatten(1).float().mean(1), dtype, **more
        )
        conv, zr, q, head, early = (
            *(make(weight) for weight in weights[:4]),
            make(weights[4], planes=True),
        )
        joint, reset, out, z = x.new_zeros(4, b, h, w, steps.padded(hidden + motion), dtype=dtype)
        context = x.to(dtype)[..., : 3 * hidden] * 0.5
        flow = flow.float().clone()
        coords = flow + pixel_grid(h, w, device=x.device)
        middle, ends = (
            slice(hidden, hidden + motion - 2),
            slice(hidden + motion - 2, hidden + motion),
        )
        joint[..., :hidden] = x[..., :hidden]
        steps.convolve(flow, early, out[..., : early.outputs], relu=False, **kernels)
        steps.convolve(
            x.to(dtype), conv, joint[..., middle], relu=True, also=reset[..., middle], **kernels
        )
        z = z[..., :hidden]
        steps.gates(
            *(joint, zr, context[..., : 2 * hidden], joint[..., :hidden], z),
            reset[..., :hidden],
            **kernels,
        )
        steps.blend(reset, q, context[..., 2 * hidden :], z, joint[..., :hidden], **kernels)
        steps.step(joint, head, flow, coords, joint[..., ends], reset[..., ends], **kernels)
        return [out, z, reset, joint, flow, coords]

    return run


def prepared(name: str, volume: str, iters: int) -> Run:
    """The whole network; its truth is its own forward in float32."""
    triton_fused.by_library = BY_LIBRARY
    torch.manual_seed(1)
    model = lcv.build(name, "elliptical").eval().with_volume(volume)

    def run(backend: str, like: Tensor, image1: Tensor, image2: Tensor) -> list[Tensor]:
        model.to(like.device)
        with torch.no_grad():
            if backend == "reference":
                out = model(image1.float(), image2.float(), iters=iters)
            else:
                fast = model.for_inference(like.dtype)
                fast.kernels = fast.fnet.kernels = fast.cnet.kernels = backend == "triton"
                out = fast(image1, image2, iters=iters)
        return [out.flow, out.low]

    return run


def cases(small: bool) -> Iterator[Case]:
    """Odd shapes; small ones for the interpreter."""
    torch.manual_seed(0)
    looked = [((2, 40, 5, 9), 3, (2, 1)), ((1, 3, 9, 12), 1, (0, 0))]
    looked += [] if small else [((2, 256, 47, 63), 4, (4, 4)), ((1, 100, 17, 130), 4, (3, 3))]
    for (b, c, h, w), levels, radius in looked:
        inputs = [*torch.randn(2, b, c, h, w), coords_near(b, h, w)]
        named = f"{b}×{c}×{h}×{w}, {levels} levels, radius {radius}"
        for kind in (AllPairs, OnDemand):
            run = lookups(kind, levels, radius, c**-0.5)
            yield Case(f"{kind.__name__} {named}", run, inputs, (2,))
    seen = [((2, 5, 3, 19), (5, 3), "x_outer"), ((1, 20, 2, 17), (1, 3), "y_outer")]
    seen += [] if small else [((2, 192, 47, 63), (9, 9), "y_outer")]
    for (b, c, h, w), window, order in seen:
        run, inputs = local(window, order, c**-0.5), list(torch.randn(2, b, c, h, w))
        yield Case(f"local {b}×{c}×{h}×{w}, window {window}, {order}", run, inputs)
    mixed = [((2, 5, 4, 19), 3, (3, 1)), ((1, 20, 3, 7), 17, (1, 3))]
    mixed += [] if small else [((2, 64, 47, 63), 16, (9, 9)), ((1, 100, 20, 33), 12, (9, 7))]
    for (b, c, h, w), o, window in mixed:
        inputs = [*torch.randn(2, b, c, h, w), torch.randn(o, c) * c**-0.5]
        yield Case(f"projected {b}×{c}×{h}×{w} to {o}, window {window}", projected(window), inputs)
    for b, h, w in ((2, 3, 5),) if small else ((2, 3, 5), (3, 47, 63)):
        mask = 4 * torch.randn(b, 576, h, w)
        for name, logits in (
            ("channels apart", mask),
            ("channels together", mask.contiguous(memory_format=torch.channels_last)),
        ):
            flow = 3 * torch.randn(b, 2, h, w)
            yield Case(f"upsample {b}×{h}×{w}, {name}", upsampled, [flow, logits], (0,))
    for b, c, h, w in ((2, 20, 9, 31),) if small else ((2, 20, 9, 31), (2, 96, 110, 257)):
        inputs = [5 + 3 * torch.randn(b, c, h, w), torch.randn(b, c, h, w)]
        yield Case(f"norm {b}×{c}×{h}×{w}", normalised, inputs)
    sizes = [((2, 5, 7), (3, 3), 24, 12), ((1, 3, 9), (1, 5), 32, 32)]
    sizes += [] if small else [((2, 47, 63), (5, 1), 128, 128), ((1, 47, 63), (3, 3), 96, 82)]
    sizes += [] if small else [((1, 47, 63), (1, 5), 128, 128)]
    for (b, h, w), kernel, hidden, motion in sizes:
        wide = steps.padded(hidden + motion)
        given = max(wide, steps.padded(3 * hidden))
        shapes = ((motion - 2, given), (2 * hidden, wide), (hidden, wide), (2, wide))
        weights = [torch.randn(*shape, *kernel) * (2 / shape[1]) ** 0.5 for shape in shapes]
        weights.append(torch.randn(hidden, 2, 7, 7) * 0.1)
        inputs = [torch.randn(b, h, w, given), torch.randn(b, 2, h, w), *weights]
        library = kernel == (1, 5)
        run = fused(kernel, hidden, motion, library)
        yield Case(
            f"fused {b}×{h}×{w}, {kernel}, {hidden} + {motion}", run, inputs, (1,), half=True
        )
    nets = [("raft-small", "all-pairs", (58, 66))]
    nets += (
        [] if small else [(n, v, (187, 245)) for n in ("raft-small", "raft-large") for v in VOLUMES]
    )
    for name, volume, (h, w) in nets:
        inputs = [torch.zeros(1), *(255 * torch.rand(2, 1, 3, h, w))]
        run = prepared(name, volume, 1 if small else 4)
        yield Case(f"{name} prepared, {volume}, {h}×{w}", run, inputs, (1, 2), half=True)


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
        unit = torch.finfo(dtype if case.half else f.dtype).eps
        allowed = 2 * (p - t).abs().max() + unit * largest
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
        every = every[1:] if case.half else every
        if small:
            # The interpreter is slow, so a case has one dtype; and it multiplies no bf16 matrices.
            if not case.name.startswith(("AllPairs", "upsample", "norm")):
                every = tuple(dtype for dtype in every if dtype != torch.bfloat16)
            every = (every[number // 2 % len(every)],)
        for dtype in every:
            found.append(compare(case, dtype, device))
    return found


def shrink_grids() -> None:
    """Larger tiles, for the interpreter runs one program after the other."""
    triton_windows.POINTS = 256
    triton_upsample.PIXELS, triton_norm.PIXELS, triton_norm.SOME = 16, 1024, 128
    triton_fused.tiles = lambda pixels, outputs: (64, 16 if outputs <= 16 else 256, 4)
    # What the interpreter's process has no library for.
    torch.cudnn_convolution_relu = lambda x, weight, bias, stride, padding, *rest: F.relu(  # type: ignore[attr-defined]
        F.conv2d(x, weight, bias, stride, padding)
    )


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

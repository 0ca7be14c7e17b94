"""Kernels on a GPU: right, and how near to the limit that binds them.

    python benchmarks/kernels.py [-o kernels.json] [--only NAME] [--tune]

First every kernel is checked against its reference (see kernel_checks.py). Then each is timed, beside
torch where torch has the same. The limits are measured in the same run: bandwidth by a copy, that of the L2
cache by a copy that fits into it, operations by a large product. A kernel's share is the longest of bytes /
bandwidth, bytes from L2 / its bandwidth, and operations / rate, over its time. Bytes of lookups are counted in
sectors of 32 bytes, the least that memory hands over. Times are of launches recorded in a CUDA graph, so that
starting them does not count. Exits with 1 if a kernel errs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import kernel_checks
from lcv.cost_volume import (
    AllPairs,
    OnDemand,
    local_cost_volume,
    pixel_grid,
    projected_cost_volume,
)
from lcv.cost_volume.allpairs import triton_impl as allpairs
from lcv.cost_volume.allpairs import triton_windows
from lcv.cost_volume.local import triton_impl as local
from lcv.cost_volume.ondemand import triton_impl as ondemand
from lcv.cost_volume.projected import triton_impl as projected
from lcv.models.raft import fused as steps
from lcv.models.raft import triton_fused, triton_norm, triton_upsample
from lcv.models.raft.upsample import convex_upsample
from lcv.provenance import provenance

LEVELS, RADIUS = 4, 4
SECTOR = 32


class Row(NamedTuple):
    """What is timed; beside: the same by torch, if it has it; bytes and operations of one run.

    cached: bytes that have to come from the L2 cache, where they are more than those from memory
    """

    name: str
    run: Callable[[], object]
    bytes: float
    operations: float
    rate: str = "float16"
    beside: Callable[[], object] | None = None
    cached: float = 0.0


def milliseconds(run: Callable[[], object], repeats: int = 20) -> float:
    """Of one run, from a graph of some: the median of `repeats` replays."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph, inside = torch.cuda.CUDAGraph(), 10
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(inside):
            run()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / inside)
    return median(times)


def limits() -> dict[str, float]:
    """Bytes a second of a copy, and operations a second of products of 8192³."""
    x = torch.empty(2**29, dtype=torch.float16, device="cuda")
    y = torch.empty_like(x)
    found = {"bandwidth": 2 * x.nbytes / (1e-3 * milliseconds(lambda: y.copy_(x)))}
    some, there = x[: 2**22], y[: 2**22]  # 16 MiB in all
    found["L2"] = 2 * some.nbytes / (1e-3 * milliseconds(lambda: there.copy_(some)))
    for name, dtype, tf32 in (
        ("float16", torch.float16, False),
        ("tf32", torch.float32, True),
        ("float32", torch.float32, False),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = torch.randn(2, 8192, 8192, dtype=dtype, device="cuda")
        seconds = 1e-3 * milliseconds(lambda a=a, b=b: a @ b, 3)
        found[name] = 2 * 8192**3 / seconds
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def smooth_coords(b: int, h: int, w: int) -> Tensor:
    """Points moved by a smooth flow with some noise, as a network's are."""
    moved = F.interpolate(6 * torch.randn(b, 2, 5, 7, device="cuda"), size=(h, w), mode="bicubic")
    grid = pixel_grid(h, w, device=torch.device("cuda"))
    return (grid + moved + 0.5 * torch.randn(b, 2, h, w, device="cuda")).contiguous()


def sector_bytes(coords: Tensor, total: int, size: int) -> float:
    """Bytes of the sectors that one reading of all windows touches, numbers of `size` bytes."""
    b, _, h, w = coords.shape
    x, y = coords.double().transpose(0, 1).reshape(2, -1, 1)
    first = torch.arange(b * h * w, device=coords.device)[:, None] * total
    rows = torch.arange(2 * RADIUS + 2, device=coords.device)
    count = 0
    for level in range(LEVELS):
        high, wide = h >> level, w >> level
        left = (x / 2**level).floor().long() - RADIUS
        right = (left + 2 * RADIUS + 1).clamp(max=wide - 1)
        left = left.clamp(min=0)
        row = (y / 2**level).floor().long() - RADIUS + rows
        seen = (row >= 0) & (row < high) & (right >= left)
        at = first + row * wide
        sectors = ((at + right + 1) * size - 1) // SECTOR - (at + left) * size // SECTOR + 1
        count += int(sectors[seen].sum())
        first = first + high * wide
    return count * float(SECTOR)


def box_bytes(coords: Tensor, channels: int, size: int) -> float:
    """Bytes that tiles of 8×8 points need of each level: their own features, and all under their windows."""
    h, w = coords.shape[2:]
    tile = ondemand.TILE
    wide = F.pad(coords, (0, -w % tile, 0, -h % tile), mode="replicate")
    tiles = wide.unfold(2, tile, tile).unfold(3, tile, tile).flatten(4)  # (b, 2, rows, columns, 64)
    pixels = 0
    for level in range(LEVELS):
        first = (tiles / 2**level).floor().long() - RADIUS
        most = torch.tensor([w >> level, h >> level], device=coords.device).view(1, 2, 1, 1)
        low = first.amin(-1).clamp(min=0)
        high = torch.minimum(first.amax(-1) + 2 * RADIUS + 2, most)
        pixels += int((high - low).clamp(min=0).prod(1).sum()) + tiles[:, 0].numel()
    return float(pixels) * channels * size


def lookups() -> Iterator[Row]:
    """Both lookups: fp16 as in prediction, bf16 and float32 as in training."""
    window = {"levels": LEVELS, "rx": RADIUS, "ry": RADIUS}
    outputs, cells = LEVELS * (2 * RADIUS + 1) ** 2, LEVELS * (2 * RADIUS + 2) ** 2
    for b, c, h, w, dtype in (
        (1, 256, 55, 128, torch.float16),
        (1, 256, 136, 240, torch.float16),
        (12, 256, 46, 62, torch.bfloat16),
        (12, 256, 46, 62, torch.float32),
    ):
        named = f"{b}×{c}×{h}×{w} {str(dtype).removeprefix('torch.')}"
        f1, f2 = torch.randn(2, b, c, h, w, device="cuda", dtype=dtype)
        f1, f2 = (f.contiguous(memory_format=torch.channels_last) for f in (f1, f2))
        coords, n, s, scale = smooth_coords(b, h, w), b * h * w, f1.element_size(), c**-0.5
        rate = "float16" if s == 2 else "float32"
        volume = allpairs.build(f1, f2, levels=LEVELS, scale=scale)
        total = volume.costs.shape[1]
        plain = AllPairs(LEVELS, RADIUS, scale, "torch")
        given = plain.build(f1, f2)
        yield Row(
            f"all-pairs build {named}",
            lambda f1=f1, f2=f2, scale=scale: allpairs.build(f1, f2, levels=LEVELS, scale=scale),
            n * total * s + 3 * n * c * s,
            2 * n * total * c,
            rate,
            lambda f1=f1, f2=f2, plain=plain: plain.build(f1, f2),
        )
        touched, written = sector_bytes(coords, total, s), n * outputs * s
        yield Row(
            f"all-pairs lookup {named}",
            lambda volume=volume, coords=coords: allpairs.lookup(volume, coords, **window),
            touched + written,
            9 * n * outputs,
            "float32",
            lambda plain=plain, given=given, coords=coords: plain.lookup(given, coords),
        )
        grad = torch.randn(b, outputs, h, w, device="cuda", dtype=dtype)
        sums = torch.zeros_like(volume.costs)
        yield Row(
            f"all-pairs backward {named}",
            lambda sums=sums, coords=coords, grad=grad: allpairs.add_op(
                sums, coords, grad, *window.values()
            ),
            2 * touched + written,
            9 * n * cells,
            "float32",
        )
        points, packed = ondemand.build(f1, f2, levels=LEVELS, scale=scale)
        slow = OnDemand(LEVELS, RADIUS, scale, backend="torch")
        state = slow.build(f1, f2)
        # Once from memory: both maps, windows of costs written and read, results written.
        least = (2.33 * n * c + 2 * n * cells + n * outputs) * s
        yield Row(
            f"on-demand lookup {named}",
            lambda p=points, q=packed, coords=coords: ondemand.lookup((p, q), coords, **window),
            least,
            2 * n * cells * c,
            rate,
            lambda slow=slow, state=state, coords=coords: slow.lookup(state, coords),
            box_bytes(coords, c, s),
        )
        yield Row(
            f"on-demand backward {named}",
            lambda g=grad, p=points, q=packed, coords=coords: ondemand.backward_op(
                g, p, q, coords, *window.values(), False
            ),
            least + (n * c + 1.33 * n * c * 2) * s,
            4 * n * cells * c,
            rate,
            None,
            # Features; sums, read and written, are twice as wide as float32 for float32 features.
            box_bytes(coords, c, s) + box_bytes(coords, c, 8 if s == 2 else 16),
        )
        del volume, given, sums


def twelve_iterations() -> Iterator[Row]:
    """RAFT's training: twelve lookups of a volume and all of their gradients."""
    b, c, h, w = 12, 256, 46, 62
    f1, f2 = torch.randn(2, b, c, h, w, device="cuda")
    coords = [smooth_coords(b, h, w) for _ in range(12)]
    n, outputs = b * h * w, LEVELS * (2 * RADIUS + 1) ** 2

    def step(backend: str) -> None:
        volume = AllPairs(LEVELS, RADIUS, c**-0.5, backend)
        g1, g2 = (f.detach().requires_grad_() for f in (f1, f2))
        state = volume.build(g1, g2)
        losses = [volume.lookup(state, each).sum() for each in coords]
        torch.autograd.grad(torch.stack(losses).sum(), (g1, g2))

    total = sum((h >> i) * (w >> i) for i in range(LEVELS))
    each = sector_bytes(coords[0], total, 4)
    yield Row(
        f"volume, 12 lookups, backward {b}×{c}×{h}×{w} float32",
        lambda: step("triton"),
        12 * (3 * each + 2 * n * outputs * 4) + 5 * n * total * 4,
        6 * n * total * c,
        "float32",
        lambda: step("torch"),
    )


def volumes() -> Iterator[Row]:
    """Window volumes: DDFlow's and VCN's."""
    for b, c, h, w, dtype in ((4, 96, 96, 224, torch.float32), (1, 192, 55, 128, torch.float16)):
        f1, f2 = torch.randn(2, b, c, h, w, device="cuda", dtype=dtype)
        n, s = b * h * w, f1.element_size()
        rate = "float16" if s == 2 else "float32"
        yield Row(
            f"local 9×9 {b}×{c}×{h}×{w} {str(dtype).removeprefix('torch.')}",
            lambda f1=f1, f2=f2: local_cost_volume(f1, f2, (9, 9), backend="triton"),
            n * (2 * c + 81) * s,
            2 * n * 81 * c,
            rate,
            lambda f1=f1, f2=f2: local_cost_volume(f1, f2, (9, 9), backend="torch"),
        )
        yield Row(
            f"local 9×9, forward and backward {b}×{c}×{h}×{w} {str(dtype).removeprefix('torch.')}",
            lambda f1=f1, f2=f2: _both_ways(local_cost_volume, "triton", f1, f2, window=(9, 9)),
            n * (6 * c + 3 * 81) * s,
            6 * n * 81 * c,
            rate,
            lambda f1=f1, f2=f2: _both_ways(local_cost_volume, "torch", f1, f2, window=(9, 9)),
        )
    b, c, o, h, w = 1, 64, 16, 96, 320
    f1, f2 = F.normalize(torch.randn(2, b, c, h, w, device="cuda"), dim=2)
    weight = torch.randn(o, c, device="cuda") / c**0.5
    options: dict[str, Any] = {"window": (9, 9), "slope": 0.1}
    n = b * h * w
    yield Row(
        f"projected 9×9 {b}×{c}×{h}×{w} to {o} float32",
        lambda: projected_cost_volume(f1, f2, weight, backend="triton", **options),
        n * (2 * c + 81 * o) * 4,
        n * 81 * c * (2 * o + 3),
        "float32",
        lambda: projected_cost_volume(f1, f2, weight, backend="torch", **options),
    )
    yield Row(
        f"projected 9×9, forward and backward {b}×{c}×{h}×{w} to {o} float32",
        lambda: _both_ways(projected_cost_volume, "triton", f1, f2, weight, **options),
        n * (8 * c + 4 * 81 * o) * 4,
        n * 81 * c * (8 * o + 15),
        "float32",
        lambda: _both_ways(projected_cost_volume, "torch", f1, f2, weight, **options),
    )


def _both_ways(
    operator: Callable[..., Tensor], backend: str, *given: Tensor, **options: Any
) -> None:
    leaves = [each.detach().requires_grad_() for each in given]
    out = operator(*leaves, backend=backend, **options)
    torch.autograd.grad(out, leaves, torch.ones_like(out))


def network() -> Iterator[Row]:
    """Upsampling, norms, and the convolutions of an update at 55×128, cuDNN's beside ours."""
    for b, h, w, dtype in ((1, 55, 128, torch.float16), (12, 46, 62, torch.bfloat16)):
        flow = torch.randn(b, 2, h, w, device="cuda")
        mask = torch.randn(b, 576, h, w, device="cuda", dtype=dtype)
        mask = mask.contiguous(memory_format=torch.channels_last)
        yield Row(
            f"upsample {b}×{h}×{w}",
            lambda flow=flow, mask=mask: convex_upsample(flow, mask, 0.25, "triton"),
            b * h * w * (576 * 2 + 520),
            b * h * w * 64 * 9 * 8,
            "float32",
            lambda flow=flow, mask=mask: convex_upsample(flow, mask, 0.25, "torch"),
        )
        yield Row(
            f"upsample, forward and backward {b}×{h}×{w}",
            lambda flow=flow, mask=mask: _upsample_both("triton", flow, mask),
            b * h * w * (3 * 576 * 2 + 2 * 520 + 144),
            b * h * w * 64 * 9 * 24,
            "float32",
            lambda flow=flow, mask=mask: _upsample_both("torch", flow, mask),
        )
    x = torch.randn(2, 64, 220, 512, device="cuda", dtype=torch.float16)
    x = x.contiguous(memory_format=torch.channels_last)
    yield Row(
        "instance norm and ReLU 2×64×220×512",
        lambda: triton_norm.normalise(x, norm=True, relu=True),
        3 * x.nbytes,
        8 * x.numel(),
        "float32",
        lambda: F.relu(F.instance_norm(x)),
    )
    for name, inputs, outputs, kernel in (
        ("convc1", 324, 256, (1, 1)),
        ("convc2", 256, 192, (3, 3)),
        ("convf2", 128, 64, (3, 3)),
        ("conv", 256, 126, (3, 3)),
        ("z and r, 1×5", 256, 256, (1, 5)),
        ("z and r, 5×1", 256, 256, (5, 1)),
        ("q, 1×5", 256, 128, (1, 5)),
        ("head 1", 128, 256, (3, 3)),
        ("head 2", 256, 2, (3, 3)),
        ("mask 2", 256, 576, (1, 1)),
    ):
        yield _convolution(name, inputs, outputs, kernel, 55, 128)
    for name, inputs, outputs, kernel in (
        ("convc2", 256, 192, (3, 3)),
        ("z and r, 1×5", 256, 256, (1, 5)),
    ):
        yield _convolution(name, inputs, outputs, kernel, 136, 240)


def _convolution(
    name: str, inputs: int, outputs: int, kernel: tuple[int, int], h: int, w: int
) -> Row:
    wide, like = steps.padded(inputs), {"device": "cuda", "dtype": torch.float16}
    x = torch.randn(1, h, w, wide, **like)
    weight = torch.randn(outputs, inputs, *kernel, device="cuda") / inputs**0.5
    bias = torch.randn(outputs, device="cuda")
    layer = steps.make_layer(weight, bias, torch.float16)
    out = torch.empty(1, h, w, outputs, **like)
    seen = x.permute(0, 3, 1, 2)
    sides = (kernel[0] // 2, kernel[1] // 2)
    return Row(
        f"{name} {inputs} to {outputs}, {h}×{w}",
        lambda: steps.convolve(x, layer, out, relu=True, kernels=True),
        (x.numel() + out.numel() + layer.packed.numel()) * 2,
        2 * h * w * inputs * outputs * kernel[0] * kernel[1],
        "float16",
        lambda: torch.cudnn_convolution_relu(
            seen, layer.weight, bias.half(), (1, 1), sides, (1, 1), 1
        ),
    )


def _upsample_both(backend: str, flow: Tensor, mask: Tensor) -> None:
    leaves = [each.detach().requires_grad_() for each in (flow, mask)]
    out = convex_upsample(*leaves, 0.25, backend)
    torch.autograd.grad(out, leaves, torch.ones_like(out))


def peak_mib(run: Callable[[], object]) -> float:
    """The most that a run holds beside what was there."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measure(row: Row, limit: dict[str, float]) -> dict[str, Any]:
    """Times and shares of one row; an error takes the place of its numbers."""
    found: dict[str, Any] = {"name": row.name, "bytes": row.bytes, "operations": row.operations}
    found["cached"] = row.cached
    try:
        found["peak_mib"] = peak_mib(row.run)
        found["ms"] = milliseconds(row.run)
        least = {
            "bytes": row.bytes / limit["bandwidth"],
            "L2": row.cached / limit["L2"],
            row.rate: row.operations / limit[row.rate],
        }
        found["binds"] = max(least, key=lambda name: least[name])
        found["share"] = max(least.values()) / (1e-3 * found["ms"])
    except Exception as error:  # one row must not cost the others
        found["error"] = f"{type(error).__name__}: {error}"[:300]
        torch.cuda.synchronize()
        return found
    if row.beside is not None:
        try:
            found["torch_peak_mib"] = peak_mib(row.beside)
            found["torch_ms"] = milliseconds(row.beside, 5)
        except Exception as error:
            print(f"torch beside {row.name}: {type(error).__name__}: {error}"[:300])
    return found


def tune(only: str) -> None:
    """Print the time of every row for some choices of its tiles."""
    choices: list[tuple[str, Callable[[], Iterator[Row]], str, Any, list[dict[str, Any]]]] = [
        ("all-pairs", lookups, "lookup", triton_windows, _grid(POINTS=(4, 8, 16), WARPS=(2, 4, 8))),
        (
            "all-pairs",
            lookups,
            "backward",
            triton_windows,
            _grid(POINTS=(4, 8, 16), WARPS=(2, 4, 8)),
        ),
        (
            "on-demand",
            lookups,
            "",
            ondemand,
            _grid(CELLS=(32, 64), AT_ONCE=(64, 128, 256), WARPS=(4, 8)),
        ),
        ("local", volumes, "", local, _grid(TILE=(16, 32), CHANNELS=(32, 64), WARPS=(2, 4))),
        (
            "projected",
            volumes,
            "",
            projected,
            _grid(PIXELS=(32, 64), CHANNELS=(16, 32), WARPS=(4, 8)),
        ),
        ("upsample", network, "", triton_upsample, _grid(PIXELS=(2, 4, 8, 16), WARPS=(2, 4))),
        ("norm", network, "", triton_norm, _grid(PIXELS=(64, 128, 256), WARPS=(4, 8))),
    ]
    shapes = [(64, 64, 4), (64, 128, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8), (128, 256, 8)]
    tiles = [{"tiles": lambda p, o, t=t: t, "STAGES": s, "t": t} for t in shapes for s in (3, 4, 5)]
    tiles += [
        {"tiles": lambda p, o, t=t: t, "STAGES": 4, "t": t} for t in ((64, 16, 4), (128, 16, 4))
    ]
    tiles += [{"by_library": lambda *_: True, "t": "cuDNN, and what follows in a kernel"}]
    choices.append((" to ", network, "×", triton_fused, tiles))
    for name, make, also, module, settings in choices:
        for row in make():
            if not (name in row.name and also in row.name and only in row.name):
                continue
            found = []
            for setting in settings:
                had = {key: getattr(module, key) for key in setting if key != "t"}
                try:
                    for key in had:
                        setattr(module, key, setting[key])
                    found.append((milliseconds(row.run, 5), _words(setting)))
                except Exception as error:
                    found.append((float("inf"), f"{_words(setting)}: {type(error).__name__}"))
                finally:
                    for key, value in had.items():
                        setattr(module, key, value)
            print(row.name)
            for ms, words in sorted(found)[:6]:
                print(f"    {1e3 * ms:9.1f} µs  {words}", flush=True)


def _grid(**values: tuple[int, ...]) -> list[dict[str, Any]]:
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def _words(setting: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in setting.items() if key != "tiles")


def line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['name']:<62} {row['error']}"
    beside = (
        f"{1e3 * row['torch_ms']:10.1f} {row['torch_peak_mib']:8.0f}" if "torch_ms" in row else ""
    )
    return (
        f"{row['name']:<62} {1e3 * row['ms']:9.1f} {row['bytes'] / row['ms'] / 1e9:7.2f} "
        f"{row['operations'] / row['ms'] / 1e9:7.1f} {row['binds']:>8} {row['share']:5.0%} "
        f"{row['peak_mib']:8.0f} {beside}"
    )


def main() -> int:
    """Checks, then times; 1 if a kernel errs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this; no checks")
    parser.add_argument("--tune", action="store_true", help="other tiles, in place of the table")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/kernels.py needs a CUDA device; kernel_checks.py runs without")
        return 2
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    if options.tune:
        tune(options.only)
        return 0
    checks = [] if options.only else kernel_checks.check("cuda")
    wrong = kernel_checks.bad(checks)
    for text in wrong:
        print("WRONG", text)
    print(f"{len(checks)} comparisons with references, {len(wrong)} results wrong", flush=True)
    torch.cuda.empty_cache()
    limit = limits()
    print(
        f"limits: copy {limit['bandwidth'] / 1e12:.2f} TB/s, in L2 {limit['L2'] / 1e12:.2f}; "
        f"products {limit['float16'] / 1e12:.0f} (fp16), {limit['tf32'] / 1e12:.0f} (TF32), "
        f"{limit['float32'] / 1e12:.0f} (float32) TFLOP/s"
    )
    head = f"{'µs':>9} {'TB/s':>7} {'TFLOP/s':>7} {'binds':>8} share {'MiB':>8}"
    print(f"{'':<62} {head} {'torch µs':>10} {'MiB':>8}")
    rows = []
    for make in (lookups, twelve_iterations, volumes, network):
        for row in make():
            if options.only in row.name:
                rows.append(measure(row, limit))
                print(line(rows[-1]), flush=True)
        torch.cuda.empty_cache()
    if options.output:
        origin = provenance(device=torch.device("cuda"))
        found = {"provenance": origin, "limits": limit, "checks": checks, "rows": rows}
        options.output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if wrong or any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The window volume with its channels activated and projected, as VCN has it: checks and dispatch."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.conventions import check_window
from lcv.cost_volume.expect import expect
from lcv.cost_volume.projected import reference, torch_impl

__all__ = ["projected_cost_volume"]


def projected_cost_volume(
    f1: Tensor,
    f2: Tensor,
    weight: Tensor,
    window: tuple[int, int],
    *,
    slope: float,
    backend: str = "auto",
) -> Tensor:
    """Products with a u×v window of the other map, activated, and mixed over their channels.

        out[b, o, i, j, y, x] = Σ_c weight[o, c] · act(f1[b, c, y, x] · f2[b, c, y+dy, x+dx]),
        act(p) = p if p > 0 else slope · p,  dx = i − (u−1)/2,  dy = j − (v−1)/2

    f1, f2: (b, c, h, w), weight: (o, c) → (b, o, u, v, h, w); f2 = 0 outside its map.

    Facts: `local_cost_volume` with channels kept, a leaky ReLU and a 1×1 convolution; the kernels
    do not hold the c·u·v·h·w numbers between them.
    """
    name = "projected_cost_volume"
    expect(name, f1, "f1: b c h w", f2, "f2: b c h w", weight, "weight: o c")
    u, v = check_window(name, window)
    chosen = choose_backend(name, backend, f1)
    if chosen == "triton":
        from lcv.cost_volume.projected import triton_impl

        return triton_impl.projected_cost_volume(f1, f2, weight, u, v, slope=slope)
    if chosen == "reference":
        return reference.projected_cost_volume(f1, f2, weight, u, v, slope=slope)
    return torch_impl.projected_cost_volume(f1, f2, weight, u, v, slope=slope)

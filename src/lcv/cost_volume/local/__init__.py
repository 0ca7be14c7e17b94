"""The cost volume of a window around each pixel: checks and dispatch."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.conventions import check_order, check_window
from lcv.cost_volume.expect import expect
from lcv.cost_volume.local import reference, torch_impl

__all__ = ["local_cost_volume"]


def local_cost_volume(
    f1: Tensor,
    f2: Tensor,
    window: tuple[int, int],
    *,
    scale: float = 1.0,
    keep_channels: bool = False,
    order: str = "x_outer",
    backend: str = "auto",
) -> Tensor:
    """Matching costs of each pixel with a u×v window of the other map, Eq. (1).

        out[b, i, j, y, x] = scale · Σ_c f1[b, c, y, x] · f2[b, c, y+dy, x+dx],
        dx = i − (u−1)/2,  dy = j − (v−1)/2,  f2 = 0 outside its map

    f1, f2: (b, c, h, w) → (b, u, v, h, w), or, with keep_channels, the products before the sum:
    (b, c, u, v, h, w), as VCN wants them. order="y_outer" swaps the two window axes (DDFlow).

    Facts: bilinear in (f1, f2); differentiable in both; the sum over c of the kept channels is
    the summed volume.
    """
    name = "local_cost_volume"
    expect(
        name,
        f1,
        "f1: b c h w",
        f2,
        "f2: b c h w",
        hint="Both maps must come from the same pyramid level.",
    )
    u, v = check_window(name, window)
    check_order(name, order)
    why = "with channels kept there is nothing to sum" if keep_channels else ""
    chosen = choose_backend(name, backend, f1, why)
    run = reference.local_cost_volume if chosen == "reference" else torch_impl.local_cost_volume
    if chosen == "triton":
        from lcv.cost_volume.local import triton_impl

        run = triton_impl.local_cost_volume
    return run(f1, f2, u, v, scale=scale, keep_channels=keep_channels, x_outer=order == "x_outer")

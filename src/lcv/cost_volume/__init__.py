"""Layer 1b: cost volumes as functions of features, and their relatives. Knows nothing of W."""

from __future__ import annotations

from lcv.cost_volume.allpairs import AllPairs, AllPairsState
from lcv.cost_volume.conventions import coords_from_flow, pixel_grid, window_offsets
from lcv.cost_volume.expect import expect
from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.cost_volume.local import local_cost_volume
from lcv.cost_volume.ondemand import OnDemand, OnDemandState
from lcv.cost_volume.projected import projected_cost_volume
from lcv.cost_volume.resize import resize, resize_flow
from lcv.cost_volume.sample import sample
from lcv.cost_volume.warp import in_view, warp, warp_clamped

__all__ = [
    "AllPairs",
    "AllPairsState",
    "OnDemand",
    "OnDemandState",
    "coords_from_flow",
    "expect",
    "forward_interpolate",
    "in_view",
    "local_cost_volume",
    "pixel_grid",
    "projected_cost_volume",
    "resize",
    "resize_flow",
    "sample",
    "warp",
    "warp_clamped",
    "window_offsets",
]

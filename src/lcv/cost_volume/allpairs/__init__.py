"""The volume of all pairs of pixels, pooled into a pyramid and looked up: checks and dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from lcv.cost_volume.allpairs import reference, torch_impl
from lcv.cost_volume.allpairs.packed import make_layout
from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.conventions import (
    Settings,
    check_levels,
    check_lookup,
    check_pyramid,
    check_radius,
)
from lcv.cost_volume.expect import expect

__all__ = ["AllPairs", "AllPairsState"]


class AllPairsState(NamedTuple):
    """What `build` hands to `lookup`. How the costs are laid out is the backend's own affair."""

    costs: Any
    shape: tuple[int, int, int]
    settings: Settings
    backend: str


@dataclass(frozen=True)
class AllPairs:
    """Costs of every pixel of frame 1 with every pixel of frame 2, and windows read from them.

    levels: level i+1 is level i averaged 2×2 over frame-2 positions, an odd last row or column
        dropped
    radius: r, or (rx, ry); a window has (2rx+1)·(2ry+1) offsets, in pixels of its level
    scale: factor of the costs; RAFT's is c^−½
    """

    levels: int = 4
    radius: int | tuple[int, int] = 4
    scale: float = 1.0
    backend: str = "auto"

    def __post_init__(self) -> None:
        check_levels("AllPairs", self.levels)
        check_radius("AllPairs", self.radius)
        choose_backend("AllPairs", self.backend)

    def build(self, f1: Tensor, f2: Tensor) -> AllPairsState:
        """The pyramid of C[y₁, x₁, y₂, x₂] = scale · ⟨f1[:, y₁, x₁], f2[:, y₂, x₂]⟩, Eq. (1).

        f1, f2: (b, c, h, w). Memory: about 1.5 · b · (h·w)² numbers.
        """
        b, _, h, w = expect(
            "AllPairs.build",
            f1,
            "f1: b c h w",
            f2,
            "f2: b c h w",
            hint="Both frames must be encoded at one size.",
        )
        check_pyramid("AllPairs.build", self.levels, h, w)
        settings = self._settings()
        levels, rx, ry, *_ = settings
        backend = choose_backend("AllPairs", self.backend, f1)
        costs: Any
        if backend == "reference":
            costs = reference.build(f1, f2, levels=levels, scale=self.scale)
        elif backend == "triton":
            from lcv.cost_volume.allpairs import triton_impl

            costs = triton_impl.build(f1, f2, levels=levels, scale=self.scale)
        else:
            layout = make_layout(h, w, levels=levels, rx=rx, ry=ry)
            costs = torch_impl.build(f1, f2, layout, scale=self.scale)
        return AllPairsState(costs, (b, h, w), settings, backend)

    def bytes(self, h: int, w: int) -> int:
        """What the pyramid of two maps h×w takes in float32."""
        rx, ry = check_radius("AllPairs", self.radius)
        return 4 * h * w * make_layout(h, w, levels=self.levels, rx=rx, ry=ry).total

    def lookup(self, state: AllPairsState, coords: Tensor) -> Tensor:
        """The costs in a window around where each pixel is believed to go.

            out[i·u·v + a·v + d] = level i at coords / 2^i + (a − rx, d − ry),  u, v = 2rx+1, 2ry+1

        read bilinearly, pixel centres at integers, zero outside.

        coords: (b, 2, h, w), absolute (x, y) → (b, levels·u·v, h, w)

        Facts: x is the slow index of a window, the finest level comes first; a window wholly out
        of view is exactly zero; differentiable in both features and in coords.
        """
        _, h, w = state.shape
        expect("AllPairs.lookup", coords, "coords: b 2 h w")
        check_lookup(
            "AllPairs.lookup", tuple(coords.shape), state.shape, state.settings, self._settings()
        )
        levels, rx, ry, *_ = state.settings
        if state.backend == "reference":
            return reference.lookup(state.costs, coords, rx=rx, ry=ry)
        if state.backend == "triton":
            from lcv.cost_volume.allpairs import triton_impl

            return triton_impl.lookup(state.costs, coords, levels=levels, rx=rx, ry=ry)
        layout = make_layout(h, w, levels=levels, rx=rx, ry=ry)
        return torch_impl.lookup(state.costs, coords, layout)

    def _settings(self) -> Settings:
        rx, ry = check_radius("AllPairs", self.radius)
        return Settings(self.levels, rx, ry, self.scale, self.backend)

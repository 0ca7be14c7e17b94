"""The all-pairs lookup without the volume, in bounded memory: checks and dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.conventions import (
    Settings,
    check_levels,
    check_lookup,
    check_pyramid,
    check_radius,
)
from lcv.cost_volume.expect import expect
from lcv.cost_volume.ondemand import reference, tiled, torch_impl
from lcv.errors import ArgumentError

__all__ = ["OnDemand", "OnDemandState"]

TILED = "tiled"
"""The torch backend's way where neighbouring points share features."""


class OnDemandState(NamedTuple):
    """What `build` hands to `lookup`. How the features are laid out is the backend's affair."""

    features: tuple[Tensor, ...]
    shape: tuple[int, int, int]
    settings: Settings
    backend: str


@dataclass(frozen=True)
class OnDemand:
    """`AllPairs` for maps whose volume does not fit: each lookup computes the costs it reads.

    Pooling and bilinear reading are linear in f2, so both give the same costs, to rounding.

    levels, radius, scale: as for `AllPairs`
    max_bytes: what a lookup, or its backward pass, may hold beside its inputs and its result;
        the Triton kernels hold less than twice the result and do not ask
    """

    levels: int = 4
    radius: int | tuple[int, int] = 4
    scale: float = 1.0
    max_bytes: int = 128 * 2**20
    backend: str = "auto"

    def __post_init__(self) -> None:
        check_levels("OnDemand", self.levels)
        check_radius("OnDemand", self.radius)
        choose_backend("OnDemand", self.backend)
        if self.max_bytes < 1:
            raise ArgumentError(f"OnDemand: max_bytes is {self.max_bytes}, wanted at least 1")

    def build(self, f1: Tensor, f2: Tensor) -> OnDemandState:
        """Both maps made ready; f1, f2: (b, c, h, w). Memory: about 2.5 times that of a map."""
        b, _, h, w = expect(
            "OnDemand.build",
            f1,
            "f1: b c h w",
            f2,
            "f2: b c h w",
            hint="Both frames must be encoded at one size.",
        )
        check_pyramid("OnDemand.build", self.levels, h, w)
        settings = self._settings()
        levels, rx, ry, *_ = settings
        backend = choose_backend("OnDemand", self.backend, f1)
        features: tuple[Tensor, ...] = (f1, f2)
        if backend == "triton":
            from lcv.cost_volume.ondemand import triton_impl

            features = triton_impl.build(f1, f2, levels=levels, scale=self.scale)
        elif backend == "torch" and _can_share(f1):
            backend = TILED
            features = tiled.build(f1, f2, levels=levels, rx=rx, scale=self.scale)
        elif backend == "torch":
            plan = torch_impl.make_plan(h, w, levels=levels, rx=rx, ry=ry, max_bytes=self.max_bytes)
            features = torch_impl.build(f1, f2, plan, scale=self.scale)
        return OnDemandState(features, (b, h, w), settings, backend)

    def lookup(self, state: OnDemandState, coords: Tensor) -> Tensor:
        """The costs in a window around where each pixel is believed to go; see AllPairs.lookup.

        coords: (b, 2, h, w), absolute (x, y) → (b, levels·(2rx+1)·(2ry+1), h, w)

        Facts: equal to AllPairs.lookup, forwards and backwards; independent of max_bytes.
        """
        _, h, w = state.shape
        expect("OnDemand.lookup", coords, "coords: b 2 h w")
        check_lookup(
            "OnDemand.lookup", tuple(coords.shape), state.shape, state.settings, self._settings()
        )
        levels, rx, ry, *_ = state.settings
        if state.backend == "triton":
            from lcv.cost_volume.ondemand import triton_impl

            return triton_impl.lookup(state.features, coords, levels=levels, rx=rx, ry=ry)
        if state.backend == "reference":
            f1, f2 = state.features
            return reference.lookup(f1, f2, coords, levels=levels, rx=rx, ry=ry, scale=self.scale)
        if state.backend == TILED:
            return tiled.lookup(state.features, coords, rx=rx, ry=ry, max_bytes=self.max_bytes)
        plan = torch_impl.make_plan(h, w, levels=levels, rx=rx, ry=ry, max_bytes=self.max_bytes)
        return torch_impl.lookup(state.features, coords, plan)

    def _settings(self) -> Settings:
        rx, ry = check_radius("OnDemand", self.radius)
        return Settings(self.levels, rx, ry, self.scale, self.backend)


def _can_share(f1: Tensor) -> bool:
    """Whether neighbouring points may share features: on a CPU, without gradients, and where no
    compiler looks on, which cannot follow sizes that depend on the coordinates."""
    traced = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return f1.device.type == "cpu" and not torch.is_grad_enabled() and not traced

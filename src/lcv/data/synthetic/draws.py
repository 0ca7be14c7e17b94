"""The draws of one kind of scene, made all at once: a few large launches in place of thousands.

Every draw of `lcv.data.random` is a dozen operations on a few numbers. Which draws a recipe asks
for never changes, so the first batch notes their names and sizes, and later ones make all of them
together. The numbers are the same to the bit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lcv.data.random import Draws, counters, mix, normals_of, units_of
from lcv.data.synthetic.settings import Recipe

LARGEST = 4096
"""Draws of more numbers than this, such as a frame's noise, are made one by one."""


class Plan:
    """The draws that a recipe has asked for so far: where each begins among all their numbers."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.numbers: dict[torch.device, Tensor] = {}

    def note(self, name: str, count: int) -> None:
        self.counts[name] = max(count, self.counts.get(name, 0))
        self.numbers.clear()  # which are out of date

    def settle(self, device: torch.device) -> Tensor:
        """The counters of all draws, on the device: (total,) int64."""
        if device not in self.numbers:
            start = 0
            for name, count in self.counts.items():
                self.places[name] = (start, count)
                start += count
            parts = [counters(name, count) for name, count in self.counts.items()]
            with torch.inference_mode(False):
                self.numbers[device] = torch.cat(parts).to(device)
        return self.numbers[device]


@functools.lru_cache(maxsize=64)
def plan_of(purpose: str, recipe: Recipe, times: int) -> Plan:
    """The one plan for the scenes, or the effects, of a recipe in sequences of this length."""
    return Plan()


class SceneDraws(Draws):
    """`Draws` by a plan: the same numbers, fewer operations."""

    def __init__(
        self,
        seed: int,
        indices: Sequence[int] | Tensor,
        device: torch.device | str | None,
        plan: Plan,
    ) -> None:
        super().__init__(seed, indices, device)
        self.plan = plan
        self.places: dict[str, tuple[int, int]] = {}
        if plan.counts:
            numbers = plan.settle(self.device)
            self.places = dict(plan.places)
            self.all_bits = (mix(self._base[:, None] + numbers) >> 32) & 0xFFFFFFFF
            self.all_units = units_of(self.all_bits)
            self.all_normals = normals_of(self.all_bits)

    def of(self, places: Tensor) -> SceneDraws:
        return SceneDraws(self.seed, self.given.cpu()[places], self.device, self.plan)

    def bits(self, name: str, shape: tuple[int, ...] = ()) -> Tensor:
        return self._part("all_bits", name, shape, super().bits)

    def _units(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return self._part("all_units", name, shape, super()._units)

    def _normals(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return self._part("all_normals", name, shape, super()._normals)

    def _part(self, kind: str, name: str, shape: tuple[int, ...], alone) -> Tensor:
        count = math.prod(shape)
        start, known = self.places.get(name, (0, 0))
        if 0 < count <= known:
            return getattr(self, kind)[:, start : start + count].view(len(self), *shape)
        if 0 < count <= LARGEST:
            self.plan.note(name, count)
        return alone(name, shape)

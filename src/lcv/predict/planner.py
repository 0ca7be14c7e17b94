"""Which way of matching fits the memory there is: predicted before anything is computed.

All-pairs costs are the fastest and need memory with the square of the pixels; computed on demand
they are the same to rounding, slower, and need memory with the pixels; tiles need hardly more than
one of them does, and their flow is not quite that of the whole image.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass

import torch

from lcv.errors import ArgumentError
from lcv.models.types import OWN_VOLUME
from lcv.predict.matching import TILES, Matcher
from lcv.predict.memory import free_bytes, in_words
from lcv.predict.pairs import Wanted
from lcv.predict.rehearsal import rehearse
from lcv.predict.tiles import Tiling, make_tiling

logger = logging.getLogger("lcv")

# A prediction may be 15 % off; what it is held against is taken so much smaller.
MARGIN = 1.15
# Sides of tiles, largest first. Below the last, hardly any motion stays inside a tile.
SIDES = (1536, 1280, 1024, 896, 768, 640, 512, 448, 384, 320, 256)


@dataclass(frozen=True)
class Plan:
    """How a pair of one size will be computed.

    strategy: "all-pairs", "on-demand" or "tiles"; "local" for VCN and DDFlow, which have one way
    bytes:    the predicted peak, above what the process holds once the model is loaded; None for
              foreign networks, whose memory is not predicted
    limit:    what it was chosen to fit, None where nobody asked
    tiling:   how the image is cut, if it is
    """

    strategy: str
    height: int
    width: int
    bytes: int | None
    limit: int | None = None
    tiling: Tiling | None = None

    @property
    def text(self) -> str:
        """The plan in a sentence."""
        size = f"{self.width}×{self.height}: {self.strategy}"
        if self.bytes is None:
            return size
        memory = f"about {in_words(self.bytes)}"
        if self.limit is not None:
            memory += f" of {in_words(self.limit)}"
        if self.tiling is None:
            return f"{size}, {memory}"
        t = self.tiling
        times = t.number * t.height * t.width / (self.height * self.width)
        return (
            f"{size} ({t.number} of {t.width}×{t.height}), {memory}; {times:.1f} times the pixels "
            f"of the whole image, and flow that differs a little from the whole image's"
        )


class Planner:
    """Plans for one network on one device.

    limit:    bytes, or None for what is free
    strategy: "auto", or the one to take
    """

    def __init__(
        self,
        name: str,
        matcher: Matcher,
        device: torch.device,
        *,
        autocast: torch.dtype | None = None,
        limit: int | None = None,
        strategy: str = "auto",
    ) -> None:
        self.name, self.matcher, self.device = name, matcher, device
        self.autocast, self.limit, self.strategy = autocast, limit, strategy
        self._plans: dict[tuple[int, int, Wanted], Plan] = {}
        self._kept: dict[tuple[int, int, Wanted], Plan] = {}

    def plan(self, height: int, width: int, wanted: Wanted) -> Plan:
        """The first way that fits, dearest in memory first; made once a size."""
        key = height, width, wanted
        if key in self._kept:
            return self._kept[key]
        if key not in self._plans:
            if len(self._plans) >= 64:  # a stream of many sizes must not grow
                self._plans.clear()
            self._plans[key] = self._choose(height, width, wanted)
            logger.info("%s", self._plans[key].text)
        return self._plans[key]

    def keep(self, plan: Plan, wanted: Wanted) -> None:
        """From now on this is the plan for its size, whatever else would fit."""
        self._kept[plan.height, plan.width, wanted] = plan

    def _choose(self, height: int, width: int, wanted: Wanted) -> Plan:
        limit = free_bytes(self.device) if self.limit is None else self.limit
        tried = []
        for strategy in self.matcher.strategies:
            if self.strategy in ("auto", strategy):
                make = self._tiled if strategy == TILES else self._whole
                plan = make(strategy, height, width, wanted, limit)
                if plan is not None and self._fits(plan):
                    return plan
                tried += [] if plan is None else [plan]
        least = min(tried, key=lambda plan: plan.bytes or 0)
        found = (
            f"only {in_words(limit)} of memory are free"
            if self.limit is None
            else f"max_memory is {in_words(limit)}"
        )
        how = f"tiles of {SIDES[-1]} pixels" if least.tiling else least.strategy
        asked = "" if self.strategy == "auto" else ", which was asked for"
        raise ArgumentError(
            f"{found}, but {self.name} needs at least {in_words(int((least.bytes or 0) * MARGIN))} for "
            f"frames of {width}×{height} pixels (as {how}{asked}). Allow more, or make the frames "
            f"smaller."
        )

    def _fits(self, plan: Plan) -> bool:
        # Who asks for a strategy and sets no limit knows better than a guess at what is free.
        insisted = self.limit is None and self.strategy != "auto"
        return insisted or (plan.bytes or 0) * MARGIN <= (plan.limit or 0)

    def _tiled(
        self, strategy: str, height: int, width: int, wanted: Wanted, limit: int
    ) -> Plan | None:
        """The largest tiles that fit, or the smallest if none do; None if the image is smaller."""
        sides = [side for side in SIDES if side < max(height, width)]
        if not sides and self.strategy != TILES:
            return None
        tilings = [
            make_tiling(height, width, side, self.matcher.model.least_side)
            for side in sides or [max(height, width)]
        ]
        plans: dict[int, Plan] = {}

        def fits(i: int) -> bool:
            if i not in plans:
                plans[i] = self._whole(strategy, height, width, wanted, limit, tilings[i])
            return self._fits(plans[i])

        # Memory falls with the side, so the first that fits is found by halving.
        first = min(bisect_left(range(len(tilings)), True, key=fits), len(tilings) - 1)
        fits(first)
        return plans[first]

    def _whole(
        self,
        strategy: str,
        height: int,
        width: int,
        wanted: Wanted,
        limit: int,
        tiling: Tiling | None = None,
    ) -> Plan:
        most = self.peak(strategy, (height, width), wanted, tiling)
        return Plan(strategy, height, width, most, limit, tiling)

    def peak(
        self, strategy: str, size: tuple[int, int], wanted: Wanted, tiling: Tiling | None = None
    ) -> int | None:
        """The predicted peak of a pair of this size in bytes; None where it cannot be predicted."""
        if strategy == OWN_VOLUME:
            return None
        return rehearse(
            self.matcher.with_strategy(strategy),
            size,
            wanted,
            device=self.device,
            autocast=self.autocast,
            tiling=tiling,
        )

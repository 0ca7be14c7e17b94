"""Plans: which strategy a pair of some size is computed with, so that it fits into memory.

    peak = bytes of the cost volume, counted exactly + a constant + bytes a pixel

The constant and the bytes a pixel of each network and strategy are in memory.json, which
`benchmarks/planner.py --write` measures. A network that is not in it is measured when it computes
the first pair of a size.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lcv.errors import ArgumentError
from lcv.memory import free_bytes, in_words
from lcv.predict.matching import TILES, Matcher, Wanted
from lcv.predict.tiles import Tiling, make_tiling

TABLE = Path(__file__).with_name("memory.json")
# A prediction may be 20 % off, so that much more must be free.
MARGIN = 1.2
# Sides of tiles, largest first. Below the last, hardly any motion stays inside a tile.
SIDES = (1536, 1280, 1024, 896, 768, 640, 512, 448, 384, 320, 256)

logger = logging.getLogger("lcv")


@dataclass(frozen=True)
class Plan:
    """How a pair of one size is computed.

    strategy: "all-pairs", "on-demand" or "tiles"; "local" for VCN and DDFlow, "own" for a foreign
              network, which have one way each
    bytes:    the peak above what the process holds once the model is loaded; None before a
              network that is not in the table has been measured
    limit:    what it had to fit into; None for a stored plan without max_memory
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
        how = "your network's own way" if self.strategy == "own" else self.strategy
        size = f"{self.width}×{self.height}: {how}"
        limit = "" if self.limit is None else f" of {in_words(self.limit)}"
        known = f", about {in_words(self.bytes or 0)}{limit}"
        memory = "; its memory will be measured on the first pair" if self.bytes is None else known
        if (t := self.tiling) is None:
            return f"{size}{memory}"
        cut = f" ({t.number} of {t.width}×{t.height})"
        return f"{size}{cut}{memory}; the flow differs a little from the whole image's"

    @property
    def as_json(self) -> list[Any]:
        """What a job keeps of it: the strategy, the side of tiles, and the bytes."""
        side = None if self.tiling is None else max(self.tiling.height, self.tiling.width)
        return [self.strategy, side, self.bytes]


class Planner:
    """Plans for one network on one device, each made once a size.

    name:  of the network, in messages; costs: its row of the table, None if it has none
    limit: bytes, or None for what is free; share: how many processes divide what is free
    strategy: "auto", or the one to take
    """

    def __init__(
        self, name: str, costs: Any, matcher: Matcher, device: torch.device, strategy: str
    ) -> None:
        self.name, self.costs, self.matcher = name, costs, matcher
        self.device, self.strategy = device, strategy
        self.limit: int | None = None
        self.share = 1
        self._plans: dict[tuple[int, int, Wanted], Plan] = {}
        self._kept: dict[tuple[int, int], Plan] = {}

    def plan(self, height: int, width: int, wanted: Wanted) -> Plan:
        """The first strategy that fits, most memory first."""
        key = height, width, wanted
        if key[:2] in self._kept:
            return self._kept[key[:2]]
        if key not in self._plans:
            self._plans[key] = self._choose((height, width), wanted)
            logger.info("%s", self._plans[key].text)
        return self._plans[key]

    def keep(self, plan: Plan) -> None:
        """From now on this is the plan for its size, whatever else would fit."""
        self._kept[plan.height, plan.width] = plan

    def from_json(self, kept: Any, height: int, width: int) -> Plan:
        """A plan that a job kept; KeyError, TypeError or ValueError if this planner cannot make it."""
        strategy, side, needed = kept
        tilings = self._tilings(strategy, (height, width), or_whole=True)
        if strategy not in self.matcher.strategies or not 0 < (needed or 1) < 2**50:
            raise ValueError(kept)
        return Plan(strategy, height, width, needed or None, self.limit, tilings[side])

    def instead_of(self, plan: Plan, wanted: Wanted) -> Iterator[Plan]:
        """Plans whose volume takes less than one that ran out of memory; none if it was asked for."""
        volumes = self.matcher.model.volumes if self.strategy == "auto" and not plan.tiling else ()
        for volume in volumes[volumes.index(plan.strategy) + 1 :] if volumes else ():
            needed = self.peak(volume, (plan.height, plan.width), wanted, None)
            yield replace(plan, strategy=volume, bytes=needed)

    def peak(self, strategy: str, size: tuple[int, int], wanted: Wanted, tiling: Any) -> int | None:
        """The predicted peak of a pair of this size (h, w) in bytes; None for unknown networks."""
        if self.costs is None:
            return None
        costs = self.costs[strategy]
        height, width = size if tiling is None else (tiling.height, tiling.width)
        matcher = self.matcher.with_strategy(strategy)
        of_tile = volume_bytes(matcher, height, width) + costs["per_pixel"] * height * width
        of_image = 0 if tiling is None else costs["per_image_pixel"]
        of_image += sum(costs[key] for key in ("both_ways", "warp_error") if getattr(wanted, key))
        return int(costs["constant"] + of_tile + of_image * size[0] * size[1])

    def _choose(self, size: tuple[int, int], wanted: Wanted) -> Plan:
        asked = [s for s in self.matcher.strategies if self.strategy in ("auto", s)]
        tried = [plan for s in asked if (plan := self._make(s, size, wanted)) is not None]
        for plan in tried:
            if self._fits(plan):
                return plan
        least = min(tried, key=lambda plan: plan.bytes or 0)
        memory, needed = in_words(least.limit or 0), in_words(int((least.bytes or 0) * MARGIN))
        each = " for each worker" if self.share > 1 else ""
        found = f"max_memory is {memory}" if self.limit else f"only {memory} is free{each}"
        how = f"tiles of {SIDES[-1]} pixels" if least.tiling else least.strategy
        chosen = "" if self.strategy == "auto" else ", which was asked for"
        raise ArgumentError(
            f"{found}, but {self.name} needs at least {needed} for frames of {size[1]}×{size[0]} "
            f"pixels (as {how}{chosen}). Allow more, or make the frames smaller."
        )

    def _fits(self, plan: Plan) -> bool:
        # A strategy that was asked for without a limit is taken even if too little seems free.
        insisted = self.limit is None and self.strategy != "auto"
        return insisted or (plan.bytes or 0) * MARGIN <= (plan.limit or 0)

    def _make(self, strategy: str, size: tuple[int, int], wanted: Wanted) -> Plan | None:
        """With the largest tiles that fit, else the smallest; None if the image is smaller still."""
        limit = free_bytes(self.device) // self.share if self.limit is None else self.limit
        plan = None
        for tiling in self._tilings(strategy, size, or_whole=self.strategy == TILES).values():
            plan = Plan(strategy, *size, self.peak(strategy, size, wanted, tiling), limit, tiling)
            if self._fits(plan):
                break
        return plan

    def _tilings(self, strategy: str, size: tuple[int, int], or_whole: bool) -> dict[Any, Any]:
        """By the side of tiles, the largest first. or_whole: as one tile where the image is small"""
        if strategy != TILES:
            return {None: None}
        sides = [side for side in SIDES if side < max(size)] or [max(size)] * or_whole
        return {s: make_tiling(*size, s, self.matcher.model.least_side) for s in sides}


@cache
def costs_of(network: str, device: str) -> Any:
    """A network's row of the table, the CPU's for a device that was not measured; None without."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return table.get(device, table["cpu"]).get(network)


def volume_bytes(matcher: Matcher, height: int, width: int) -> int:
    """What the cost volume of an image takes, where the network has one that can say so."""
    model: Any = matcher.model
    count = getattr(getattr(model, "cost_volume", None), "bytes", None)
    if count is None:
        return 0
    in_float32 = int(count(-(-height // model.stride), -(-width // model.stride)))
    return in_float32 // (1 if matcher.half is None else 2)

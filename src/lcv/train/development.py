"""The development sets in validation: what kind of scene a network is good at, and where in it.

Fixed procedural pairs with held-out textures, in sets of one kind each, so that a choice rests on
hundreds of pairs. EPE is told of each set, and of three regions apart:

    boundary        within 8 px of a motion boundary
    out_of_frame    where the truth leads out of the frame, wherever that is
    interior        all else
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv.data.synthetic.development import DEVELOPMENT, PAIRS, SIZE, development_batch
from lcv.files import write_text
from lcv.models.types import tensor_of
from lcv.train.batches import texture_bank
from lcv.train.config import TrainConfig
from lcv.train.distributed import Processes
from lcv.train.kept import Kept, Pair

AT_ONCE = 16
NEAR = 8
REGIONS = ("boundary", "out_of_frame", "interior")


@dataclass(frozen=True)
class PerPair:
    """EPE of every pair. errors, pixels: (sets, pairs, regions) float64, sums over the pixels."""

    errors: Tensor
    pixels: Tensor

    def numbers(self) -> dict[str, float]:
        """`street/epe`, `street/boundary`, …, and the mean over the sets of each: `epe`, …"""
        found: dict[str, float] = {}
        errors, pixels = self.errors.sum(1), self.pixels.sum(1)
        whole = errors.sum(1, keepdim=True) / pixels.sum(1, keepdim=True)
        table = torch.cat((whole, errors / pixels), 1)  # NaN in a set without such pixels
        for column, region in enumerate(("epe", *REGIONS)):
            found[region] = float(table[:, column].nanmean())
            for name, value in zip(DEVELOPMENT, table[:, column].tolist(), strict=True):
                found[f"{name}/{region}"] = value
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def write(self, path: Path, step: int) -> None:
        """EPE of each pair by set, as JSON, to compare two runs pair by pair."""
        epe = self.errors.sum(2) / self.pixels.sum(2)
        sets = {
            name: [round(value, 6) for value in row]
            for name, row in zip(DEVELOPMENT, epe.tolist(), strict=True)
        }
        content = {"format": "lcv development 1", "step": step, "epe": sets}
        write_text(path, json.dumps(content) + "\n", overwrite=True)


class Development:
    """The sets, made once and kept on the device: a gigabyte."""

    def __init__(self, config: TrainConfig, processes: Processes, kept: Kept | None) -> None:
        self.config, self.processes, self.kept = config, processes, kept or Kept()

    def __call__(self, model: nn.Module, options: dict[str, Any]) -> PerPair:
        """Every process measures its share of the pairs, and each is given all."""
        dtype = tensor_of(model).dtype
        shape = (2, len(DEVELOPMENT), PAIRS, len(REGIONS))
        sums = torch.zeros(shape, dtype=torch.float64, device=self.processes.device)
        rank, world = self.processes.rank, self.processes.world
        for number, name in enumerate(DEVELOPMENT):
            kept = self.kept.pairs(f"development {name}", lambda name=name: self._make(name))  # type: ignore[misc]
            for k, (image1, image2, truth, region) in enumerate(kept):
                first = (k * world + rank) * AT_ONCE
                flow = model(image1.to(dtype), image2.to(dtype), **options).flow
                error = (flow.double() - truth).norm(dim=1, keepdim=True)
                for i in range(len(REGIONS)):
                    inside = region == i
                    found = torch.stack(((error * inside).sum((1, 2, 3)), inside.sum((1, 2, 3))))
                    sums[:, number, first : first + len(truth), i] = found.double()
        errors, pixels = self.processes.sum(sums).cpu()
        return PerPair(errors, pixels)

    def _make(self, name: str) -> Iterator[Pair]:
        """This process's share of a set; images in eight bits, and the region in place of `valid`."""
        device = self.processes.device
        bank = texture_bank(self.config.data, "held-out", device)
        step = AT_ONCE * self.processes.world
        for first in range(AT_ONCE * self.processes.rank, PAIRS, step):
            indices = range(first, min(first + AT_ONCE, PAIRS))
            made = development_batch(name, indices, SIZE, device, bank)
            one, two = (image.round().to(torch.uint8) for image in (made.image1, made.image2))
            yield one, two, made.flow, regions(made.flow, made.out_of_frame)


def regions(flow: Tensor, out_of_frame: Tensor) -> Tensor:
    """The place in REGIONS of each pixel's own; flow (b, 2, h, w), out_of_frame (b, 1, h, w) bool."""
    near = F.max_pool2d(motion_boundaries(flow).float(), 2 * NEAR + 1, 1, NEAR) > 0
    region = torch.where(near, 0, 2)
    return torch.where(out_of_frame, 1, region).to(torch.uint8)


def motion_boundaries(flow: Tensor) -> Tensor:
    """Where motion changes from a pixel to the next one right of it or below, (b, 1, h, w) bool.

    |∂flow/∂x|² + |∂flow/∂y|² > 0.01 |flow|² + 0.002, Sundaram, Brox and Keutzer's (2010) rule
    """
    right = F.pad(flow.diff(dim=3), (0, 1))
    below = F.pad(flow.diff(dim=2), (0, 0, 0, 1))
    change = (right.square() + below.square()).sum(1, keepdim=True)
    return change > 0.01 * flow.square().sum(1, keepdim=True) + 0.002

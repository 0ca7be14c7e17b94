"""Where batches come from: made on the device, or read from files by workers and augmented there.

Sample i of step s has the index s·batch + i, and everything about it follows from the index and the
seed. So a run sees the same pairs at any number of processes, parts or workers, and after a resume.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import Batch, generate
from lcv.data.synthetic.textures import load_bank, procedural_bank
from lcv.errors import ArgumentError, FileError
from lcv.train.config import DataConfig, TrainConfig
from lcv.train.distributed import Processes

SUBSTITUTES = 2**40  # indices from here on stand in for excluded ones


@dataclass(frozen=True)
class TrainBatch:
    """What a step takes: images (b, 3, h, w), truth (b, 2, h, w), where it is known (b, 1, h, w)
    bool, and how much each pixel counts in the sequence loss (b, 1, h, w)."""

    image1: Tensor
    image2: Tensor
    flow: Tensor
    valid: Tensor
    weight: Tensor

    def split(self, parts: int) -> list[TrainBatch]:
        """Equal parts along the batch."""
        if len(self.image1) % parts:
            raise ArgumentError(
                f"accumulate is {parts}, which does not divide a process's {len(self.image1)} pairs"
            )
        chunks = [getattr(self, f.name).chunk(parts) for f in fields(self)]
        return [TrainBatch(*part) for part in zip(*chunks, strict=True)]

    def clone(self) -> TrainBatch:
        return TrainBatch(*(getattr(self, f.name).clone() for f in fields(self)))

    def copy_(self, other: TrainBatch) -> None:
        """Another batch's numbers into these tensors, which a captured graph reads."""
        for f in fields(self):
            getattr(self, f.name).copy_(getattr(other, f.name), non_blocking=True)

    def hold_for(self, stream: torch.cuda.Stream) -> None:
        """Let the memory not be given to another until what this stream has to do so far is done."""
        for f in fields(self):
            getattr(self, f.name).record_stream(stream)


class Source(Protocol):
    """Batches of a run, from any step on."""

    def batches(self, first_step: int) -> Iterator[TrainBatch]:
        """This process's share of every step from `first_step` on, without end."""

    def names(self, step: int) -> list[str]:
        """What to call the samples of this process's share of a step."""

    def one_by_one(self, step: int) -> Iterator[tuple[str, TrainBatch]]:
        """The same samples each alone, with its name."""


class Procedural:
    """Pairs made on the device, several steps' worth at a time, since few large launches cost
    less than many small ones."""

    def __init__(self, config: TrainConfig, processes: Processes, dtype: torch.dtype) -> None:
        data = config.data
        if data.recipe not in RECIPES:
            raise ArgumentError(
                f"data.recipe is {data.recipe!r}, wanted one of {', '.join(RECIPES)}"
            )
        self.config, self.processes, self.dtype = config, processes, dtype
        self.recipe = RECIPES[data.recipe]
        self.bank = texture_bank(data, "train", processes.device)
        self.excluded = {self._index_of(name) for name in data.exclude}

    def batches(self, first_step: int) -> Iterator[TrainBatch]:
        groups = self._groups(first_step)
        if self.processes.device.type == "cuda":
            groups = meanwhile(groups, torch.cuda.Stream(self.processes.device))
        for group in groups:
            yield from group

    def _groups(self, step: int) -> Iterator[list[TrainBatch]]:
        """Some steps' batches at a time."""
        while True:
            # Groups begin at multiples of `ahead`, so that they are the same after a resume.
            ahead = self.config.data.ahead - step % self.config.data.ahead
            indices = [i for s in range(step, step + ahead) for i in self._indices(s)]
            yield self._make(indices).split(ahead)
            step += ahead

    def names(self, step: int) -> list[str]:
        return [self._name(index) for index in self._indices(step)]

    def one_by_one(self, step: int) -> Iterator[tuple[str, TrainBatch]]:
        for index in self._indices(step):
            yield self._name(index), self._make([index])

    def _indices(self, step: int) -> list[int]:
        return [self._admitted(i) for i in self.processes.share(self.config.batch, step)]

    def _admitted(self, index: int) -> int:
        while index in self.excluded:
            index += SUBSTITUTES
        return index

    def _make(self, indices: list[int]) -> TrainBatch:
        made = generate(
            self.recipe,
            self.config.seed,
            indices,
            self.config.data.size,
            self.processes.device,
            textures=self.bank,
        )
        images = made.image1.to(self.dtype), made.image2.to(self.dtype)
        valid = torch.ones_like(made.occluded)
        weight = pixel_weights(made, self.config.data)
        return TrainBatch(*images, made.flow.to(self.dtype), valid, weight.to(self.dtype))

    def _name(self, index: int) -> str:
        return f"procedural:{self.config.data.recipe}:{self.config.seed}:{index}"

    @staticmethod
    def _index_of(name: str) -> int:
        index = name.rpartition(":")[2]
        if not name.startswith("procedural:") or not index.isdigit():
            raise ArgumentError(f"data.exclude: {name!r} is not the name of a procedural pair")
        return int(index)


def meanwhile(
    groups: Iterator[list[TrainBatch]], stream: torch.cuda.Stream
) -> Iterator[list[TrainBatch]]:
    """The same groups, each made on a stream of its own while the one before is trained on.

    Much of making pairs is many small kernels, which leave room for those of the training step.
    """

    def begin() -> tuple[list[TrainBatch], torch.cuda.Event]:
        with torch.cuda.stream(stream):
            return next(groups), stream.record_event()

    user = torch.cuda.current_stream()
    stream.wait_stream(user)  # textures, for one, may still be on their way
    following = begin()
    while True:
        group, made = following
        following = begin()
        user.wait_event(made)
        for batch in group:
            batch.hold_for(user)
        yield group


def texture_bank(data: DataConfig, part: str, device: torch.device) -> Tensor:
    """The textures that scenes are painted with; part: train or held-out."""
    if data.textures is None:
        return procedural_bank(part, device=str(torch.empty(0, device=device).device))
    try:
        return load_bank(data.textures, part, detailed=data.detailed, device=device)
    except FileError as error:
        why = str(error).removeprefix(f"{Path(data.textures)}: ")
        raise FileError(f"data.textures is {data.textures!r}: {why}") from None


def pixel_weights(made: Batch, data: DataConfig) -> Tensor:
    """What each pixel of procedural pairs counts, (b, 1, h, w): less, if the configuration says so,
    where frame 1 shows something that moves by itself and frame 2 does not show it.

    What only the camera moves always counts: its motion can be told from what is still seen.
    """
    weight = torch.ones_like(made.occluded, dtype=made.flow.dtype)
    if data.occluded_weight != 1:
        hidden = made.occluded & ~made.out_of_frame & made.independent
        weight = torch.where(hidden, data.occluded_weight, weight)
    if data.out_of_frame_weight != 1:
        gone = made.out_of_frame & made.independent
        weight = torch.where(gone, data.out_of_frame_weight, weight)
    return weight


def make_source(config: TrainConfig, processes: Processes, dtype: torch.dtype) -> Source:
    """The source that a configuration names."""
    if config.data.source == "procedural":
        return Procedural(config, processes, dtype)
    if config.data.source == "files":
        from lcv.train.files import Files  # which needs what is defined here

        return Files(config, processes, dtype)
    raise ArgumentError(f"data.source is {config.data.source!r}, wanted procedural or files")

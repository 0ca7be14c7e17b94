"""One job split over processes and machines: which pairs are whose.

A shard is a contiguous share of all pairs, so that neighbours still share their frame. It follows
from the inputs and from i/n alone: shards need not talk to each other, nor run at the same time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lcv.errors import ArgumentError

# Other processes may be busy for days after this one is done.
PATIENCE = timedelta(days=30)


@dataclass(frozen=True)
class Shard:
    """Share `index` of `count`, counted from 1."""

    index: int = 1
    count: int = 1

    @property
    def is_all(self) -> bool:
        return self.count == 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True)
class Part:
    """Pairs `first` … `last` of a sequence, `last` included; None: to its end, wherever that is."""

    sequence: int
    first: int = 0
    last: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.last is None


def parse_shard(text: str) -> Shard:
    """1/4 … 4/4."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ArgumentError(
            f"--shard is {text!r}, wanted i/n with i from 1 to n, such as 1/4, 2/4, 3/4 and 4/4 for "
            f"four processes"
        )
    return Shard(int(match[1]), int(match[2]))


def shard_of(text: str | None, environment: Mapping[str, str] | None = None) -> Shard:
    """The share that was asked for, or the one that torchrun gives this process; all without."""
    environment = os.environ if environment is None else environment
    world = int(environment.get("WORLD_SIZE", "1"))
    if text is None:
        return Shard(int(environment.get("RANK", "0")) + 1, world)
    if world > 1:
        raise ArgumentError(
            f"--shard {text} was given to one of {world} processes of torchrun, which splits the "
            f"work itself; leave one of the two out"
        )
    return parse_shard(text)


def device_of(device: str | None, environment: Mapping[str, str] | None = None) -> str | None:
    """Under torchrun on GPUs each process has its own."""
    environment = os.environ if environment is None else environment
    if "LOCAL_RANK" not in environment or device not in (None, "cuda"):
        return device
    import torch

    return f"cuda:{environment['LOCAL_RANK']}" if torch.cuda.is_available() else device


def parts_of(pairs: list[int | None], shard: Shard, *, whole: bool = False) -> list[Part]:
    """This shard's parts, in order. pairs: of each sequence; None where nobody knows

    whole: sequences are not divided, because each pair needs the one before it. A sequence of
    unknown length is never divided.

    Facts: the parts of all n shards are all pairs, each once; the last part of a sequence is open,
    so that frames beyond those declared are its too.
    """
    if shard.is_all:
        return [Part(number) for number in range(len(pairs))]
    counts = [1 if count is None else count for count in pairs]
    total = sum(counts)
    low = (shard.index - 1) * total // shard.count
    high = shard.index * total // shard.count
    parts, start = [], 0
    for number, count in enumerate(counts):
        end = start + count
        if whole or pairs[number] is None:
            if low <= start < high:
                parts.append(Part(number))
        elif max(low, start) < min(high, end):
            last = None if high >= end else high - 1 - start
            parts.append(Part(number, max(low, start) - start, last))
        start = end
    return parts


def divided_among(pairs: list[int | None], count: int) -> list[int]:
    """The sequences of which more than one shard has a part."""
    owners: dict[int, int] = {}
    for index in range(1, count + 1):
        for part in parts_of(pairs, Shard(index, count)):
            owners[part.sequence] = owners.get(part.sequence, 0) + 1
    return sorted(number for number, shards in owners.items() if shards > 1)


def wait_for_all(environment: Mapping[str, str] | None = None) -> None:
    """Under torchrun, leave together: it ends all processes as soon as one leaves with an error."""
    environment = os.environ if environment is None else environment
    if "MASTER_ADDR" not in environment or int(environment.get("WORLD_SIZE", "1")) == 1:
        return
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=PATIENCE)
    dist.barrier()
    dist.destroy_process_group()

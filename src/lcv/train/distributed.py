"""One process or many: who we are, which share of a batch is ours, and means over all."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Processes:
    """This process among `world` ones, and its device."""

    rank: int
    world: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, batch: int, step: int) -> range:
        """The indices of this process's samples in a step: the same samples a step at any world.

        Sample i of step s has the index s·batch + i; processes take consecutive parts.
        """
        if batch % self.world:
            raise ArgumentError(
                f"batch is {batch}, wanted a multiple of the {self.world} processes"
            )
        part = batch // self.world
        first = step * batch + self.rank * part
        return range(first, first + part)

    def mean(self, value: Tensor) -> Tensor:
        """The mean over processes, on each of them."""
        if self.world == 1:
            return value
        value = value.detach().clone()
        dist.all_reduce(value)
        return value / self.world

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes, on each of them."""
        if self.world > 1:
            value = value.detach().clone()
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier()


def join(device: str | None = None) -> Processes:
    """Who torchrun says we are; alone without it."""
    cuda = torch.cuda.is_available() if device is None else device.startswith("cuda")
    if "WORLD_SIZE" not in os.environ:
        return Processes(0, 1, torch.device(device or ("cuda" if cuda else "cpu")))
    local = int(os.environ["LOCAL_RANK"])
    own = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(own)
    if not dist.is_initialized():
        store, rank, world = next(rendezvous("env://"))
        # After a restart the store still holds the addresses of the processes before it.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"attempt {attempt}", store)
        backend = "nccl" if cuda else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=world)
    return Processes(dist.get_rank(), dist.get_world_size(), own)


def leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()

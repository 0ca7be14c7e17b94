"""One process or many: who we are, which share of a batch is ours, and means over all."""

from __future__ import annotations

import gc
import importlib
import inspect
import itertools
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from lcv.errors import ArgumentError
from lcv.train.config import TrainConfig

_groups = itertools.count()


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

    def any(self, here: bool) -> bool:
        """Whether it holds on one process at least, on each of them; no device is waited for."""
        if self.world == 1:
            return here
        flag = torch.tensor(int(here))
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag)

    def gather(self, names: list[str]) -> list[str]:
        """The names of all processes, in their order, on each of them."""
        if self.world == 1:
            return names
        found: list[list[str]] = [[]] * self.world
        dist.all_gather_object(found, names)
        return [name for each in found for name in each]

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
        # Its functions take the group of this moment as a default argument. Imported later, as the
        # wrapper does, they would hold the group for ever, and `leave` could not end its threads.
        importlib.import_module("torch.distributed.nn.functional")
        store, rank, world = next(rendezvous("env://"))
        # The store still holds the addresses of processes before a restart, and of groups before.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"attempt {attempt}, group {next(_groups)}", store)
        backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"  # by the tensors' device
        dist.init_process_group(backend, store=store, rank=rank, world_size=world)
    return Processes(dist.get_rank(), dist.get_world_size(), own)


def check_device(config: TrainConfig, device: torch.device) -> None:
    """Refuse what a device cannot do, before anything is made."""
    if config.graph and device.type != "cuda":
        raise ArgumentError(
            f"graph is True, which needs CUDA, and the device is {device.type}; use graph=False"
        )


def leave() -> None:
    """Destroy the group and end its threads; whoever holds a `replicated` model lets go of it first.

    A thread of gloo's that waits for the interpreter while that ends is torn out of it, and takes
    the process with it ("terminate called without an active exception").
    """
    if dist.is_initialized():
        dist.destroy_process_group()
        gc.collect()  # the group goes with its last owner, and some of them lie in cycles


def replicated(model: nn.Module) -> DistributedDataParallel:
    """The model with gradients averaged over all processes; each keeps its own buffers."""
    known = inspect.signature(DistributedDataParallel).parameters
    # torch 2.13 has another word for it, and warns of the old one.
    word = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {word: False}
    return DistributedDataParallel(model, **options)

"""Batches from files: read by worker processes in a fixed order, augmented together on the device.

A run's samples are numbered from 0. Sample i belongs to epoch i // n, where n counts the records
of the mixture with their repetitions, and to place i mod n of that epoch's order:

    order(epoch) = argsort of 64 random bits a place, a function of (seed, epoch) alone

Its augmentation follows from (seed, i). Workers read and draw nothing, so a batch is the same at
any number of workers, processes or parts, and after a resume.

Without supervision (`loss.name` unsupervised) no truth is read, even where there is one.
"""

from __future__ import annotations

import inspect
import os
import signal
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from lcv.data.augment import AUGMENTATIONS, Augmentation, Batch, augment_mixed, pad_samples
from lcv.data.chairs import chairs
from lcv.data.dataset import Dataset
from lcv.data.frames import frames, pairs, videos
from lcv.data.hd1k import hd1k
from lcv.data.kitti import kitti
from lcv.data.listfile import listfile
from lcv.data.middlebury import middlebury
from lcv.data.mix import Mix
from lcv.data.random import Draws
from lcv.data.record import Record
from lcv.data.sintel import sintel
from lcv.data.spring import spring
from lcv.data.things import things
from lcv.errors import ArgumentError, LcvError
from lcv.train.batches import TrainBatch
from lcv.train.config import DataConfig, PartConfig, SplitConfig, TrainConfig
from lcv.train.distributed import Processes

DATASETS: dict[str, Callable[..., Dataset]] = {
    "chairs": chairs,
    "things": things,
    "sintel": sintel,
    "kitti": kitti,
    "hd1k": hd1k,
    "middlebury": middlebury,
    "spring": spring,
    "list": listfile,
    "frames": frames,
    "pairs": pairs,
    "videos": videos,
}
ORDERS_KEPT = 2  # around the end of an epoch two orders are in use


@dataclass(frozen=True)
class Item:
    """One sample to be read: its number in the run, which part it belongs to, and its files."""

    index: int
    part: int
    record: Record


class Group(NamedTuple):
    """The samples of a batch that share an augmentation, padded to one size, on the host.

    A named tuple of tensors and lists, since that is what the loader knows how to pin.
    """

    part: int
    places: list[int]
    indices: Tensor
    sizes: Sequence[Sequence[int]]
    image1: Tensor
    image2: Tensor
    flow: Tensor | None
    valid: Tensor | None


class Files:
    """The mixture of datasets that `data.parts` describes; a `lcv.train.batches.Source`."""

    def __init__(self, config: TrainConfig, processes: Processes, dtype: torch.dtype) -> None:
        if not config.data.parts:
            raise ArgumentError(
                "data.parts is empty, wanted at least one dataset, since data.source is files"
            )
        self.config, self.processes, self.dtype = config, processes, dtype
        self.augmentations = [augmentation_of(part, config.data) for part in config.data.parts]
        datasets = [list_records(part, config.data) for part in config.data.parts]
        if config.loss.name == "unsupervised":
            datasets = [_without_truth(dataset) for dataset in datasets]
        else:
            for part, dataset in zip(config.data.parts, datasets, strict=True):
                _check_truth(part, dataset)
        weights = [part.weight for part in config.data.parts]
        self.mix = Mix(*zip(datasets, weights, strict=True))
        self._ends = list(accumulate(w * len(d) for w, d in zip(weights, datasets, strict=True)))
        self._orders: dict[int, list[int]] = {}
        self.excluded = frozenset(config.data.exclude)
        if self.excluded:
            _check_excluded(self.excluded, datasets)

    def batches(self, first_step: int) -> Iterator[TrainBatch]:
        data = self.config.data
        workers = data.workers
        loader: DataLoader[Any] = DataLoader(
            cast(Any, Reader()),
            batch_sampler=cast(Any, _Steps(self, first_step)),
            num_workers=workers,
            collate_fn=_as_it_is,
            pin_memory=self.processes.device.type == "cuda",
            worker_init_fn=partial(_begin_worker, os.getpid()),
            # A forked process would inherit the device's context and locks held by threads.
            multiprocessing_context="spawn" if workers else None,
            prefetch_factor=max(1, -(-data.ahead // workers)) if workers else None,
            # Of its own, since the loader draws a number that nobody uses from it.
            generator=torch.Generator(),
        )
        for read in loader:
            yield self._augmented(_or_raise(read))

    def names(self, step: int) -> list[str]:
        return [name_of(item.record) for item in self.items(step)]

    def one_by_one(self, step: int) -> Iterator[tuple[str, TrainBatch]]:
        for item in self.items(step):
            groups = _or_raise(Reader().__getitems__([item]))
            yield name_of(item.record), self._augmented(groups)

    def items(self, step: int) -> list[Item]:
        """This process's share of a step."""
        return [self.item(index) for index in self.processes.share(self.config.batch, step)]

    def item(self, index: int) -> Item:
        """Sample `index` of the run; in the place of an excluded one, the next that is admitted."""
        epoch, place = divmod(index, len(self.mix))
        order = self._order(epoch)
        while name_of(self.mix[order[place]]) in self.excluded:
            place = (place + 1) % len(self.mix)
        position = order[place]
        return Item(index, bisect_right(self._ends, position), self.mix[position])

    def _order(self, epoch: int) -> list[int]:
        if epoch not in self._orders:
            while len(self._orders) >= ORDERS_KEPT:
                del self._orders[min(self._orders)]
            words = Draws(self.config.seed, [epoch]).words("files: order", (len(self.mix),))
            self._orders[epoch] = words[0].argsort(stable=True).tolist()
        return self._orders[epoch]

    def _augmented(self, groups: list[Group]) -> TrainBatch:
        device = self.processes.device
        parts = []
        for group in groups:
            image1, image2, indices = (
                tensor.to(device, non_blocking=True)
                for tensor in (group.image1, group.image2, group.indices)
            )
            flow, valid = (
                None if tensor is None else tensor.to(device, non_blocking=True)
                for tensor in (group.flow, group.valid)
            )
            sizes = tuple((height, width) for height, width in group.sizes)
            batch = Batch(image1, image2, indices, sizes, flow, valid)
            parts.append((batch, self.augmentations[group.part]))
        made = augment_mixed(parts, self.config.seed)
        flow, valid = made.flow, made.valid
        if flow is None or valid is None:
            flow = torch.zeros_like(made.image1[:, :2])
            valid = torch.zeros_like(made.image1[:, :1], dtype=torch.bool)
        places = [place for group in groups for place in group.places]
        fields = [made.image1, made.image2, flow, valid]
        if places != sorted(places):
            back = torch.tensor(places).argsort().to(device, non_blocking=True)
            fields = [field[back] for field in fields]
        image1, image2, flow = (field.to(self.dtype) for field in fields[:3])
        return TrainBatch(image1, image2, flow, fields[3], torch.ones_like(flow[:, :1]))


class Reader:
    """What a worker does: read the files of a batch and pad them, one group a part."""

    def __getitems__(self, items: Sequence[Item]) -> list[Group] | LcvError:
        """Groups in the order of their first sample; the error, if a file cannot be read.

        An error is returned, since one that is raised would stop the run as soon as it is read,
        several steps before its turn, and come out wrapped in the worker's traceback.
        """
        groups = []
        for part in dict.fromkeys(item.part for item in items):
            places = [place for place, item in enumerate(items) if item.part == part]
            samples = []
            for item in (items[place] for place in places):
                try:
                    samples.append(item.record.read(maps=False))
                except LcvError as error:
                    return type(error)(
                        f"{error}; the sample is {name_of(item.record)!r}, and data.exclude can "
                        f"leave it out"
                    )
            batch = pad_samples(samples, [items[place].index for place in places])
            rest = (batch.sizes, batch.image1, batch.image2, batch.flow, batch.valid)
            groups.append(Group(part, places, batch.indices, *rest))
        return groups


class _Steps:
    """The samples of each step, from one on without end; the loader asks in this process."""

    def __init__(self, files: Files, first: int) -> None:
        self.files, self.first = files, first

    def __iter__(self) -> Iterator[list[Item]]:
        return (self.files.items(step) for step in count(self.first))


def name_of(record: Record) -> str:
    """A record's name with its dataset's: KITTI 2012 and 2015 both have a 000000_10."""
    return f"{record.dataset}/{record.name}"


def list_records(
    part: PartConfig | SplitConfig, data: DataConfig, where: str = "data.parts"
) -> Dataset:
    """The records of one part of a mixture, or of a split; `where` names it in an error."""
    if part.dataset not in DATASETS:
        raise ArgumentError(
            f"{where}: there is no dataset {part.dataset!r}, wanted one of {', '.join(DATASETS)}"
        )
    lister = DATASETS[part.dataset]
    known = [name for name in inspect.signature(lister).parameters if name not in ("root", "path")]
    for name in part.options:
        if name not in known:
            raise ArgumentError(
                f"{where}: {part.dataset} has no option {name!r}, wanted one of {', '.join(known)}"
            )
    return lister(Path(data.root) / (part.root or ""), **part.options)


def augmentation_of(part: PartConfig, data: DataConfig) -> Augmentation:
    """What is done to the samples of a part, cropped to the run's size."""
    if part.augmentation not in AUGMENTATIONS:
        raise ArgumentError(
            f"data.parts: there is no augmentation {part.augmentation!r}, wanted one of "
            f"{', '.join(AUGMENTATIONS)}"
        )
    return AUGMENTATIONS[part.augmentation].with_crop(data.size)


def _check_truth(part: PartConfig, dataset: Dataset) -> None:
    """Refuse a part without truth, and one whose truth would be interpolated over its holes."""
    for record in dataset:
        if record.flow is None:
            raise ArgumentError(
                f"data.parts: {name_of(record)} has no truth to train on; choose another split, "
                f"or train without it (loss.name unsupervised)"
            )
        if record.sparse and not AUGMENTATIONS[part.augmentation].sparse:
            raise ArgumentError(
                f"data.parts: the truth of {name_of(record)} has holes, over which the "
                f"augmentation {part.augmentation!r} would interpolate; wanted one of "
                f"{', '.join(name for name, a in AUGMENTATIONS.items() if a.sparse)}"
            )


def _without_truth(dataset: Dataset) -> Dataset:
    return Dataset(dataset.name, tuple(replace(record, flow=None) for record in dataset))


def _check_excluded(excluded: frozenset[str], datasets: Sequence[Dataset]) -> None:
    known = {name_of(record) for dataset in datasets for record in dataset}
    for name in sorted(excluded - known):
        near = get_close_matches(name, sorted(known)) or sorted(known)
        raise ArgumentError(f"data.exclude: there is no sample {name!r}; there is {near[0]!r}")
    if not known - excluded:
        raise ArgumentError("data.exclude leaves no sample to train on")


def _or_raise(read: list[Group] | LcvError) -> list[Group]:
    if isinstance(read, LcvError):
        raise read
    return read


def _as_it_is(read: Any) -> Any:
    return read


def _begin_worker(run: int, _: int) -> None:
    """Ctrl-C and a scheduler's SIGTERM reach the workers too; the run itself decides what then.

    run: its process. Of a run that was killed while its workers were starting they would never hear:
    the loader looks for the end of whoever is their parent by now.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getppid() != run:
        os._exit(1)

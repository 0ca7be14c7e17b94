"""A network over pairs with truth, under a protocol: one pair at a time, on one process or many.

Pairs are measured alone, so that neither a batch nor the number of processes changes a number, and
their sums are gathered and added in a way that does not depend on who made them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from typing import Protocol as Interface

import numpy as np
import torch
from torch import Tensor, nn

from lcv.data.record import Sample
from lcv.errors import ArgumentError, LcvError
from lcv.evaluate.calling import (
    Caller,
    call_options,
    evaluating,
    image_tensor,
    stored,
    usable_device,
    warm_units,
)
from lcv.evaluate.finished import Finished, settings_of
from lcv.evaluate.metrics import Sums, metrics_from, pair_sums
from lcv.evaluate.protocols import Protocol
from lcv.evaluate.results import DatasetResult, PairResult, Result
from lcv.inner_product import InnerProduct
from lcv.models.types import FlowModel, tensor_of
from lcv.models.wrap import as_flow_model
from lcv.provenance import provenance, weights_words

Progress = Callable[[str, int, int], None]
Measured = tuple[Sums, str]
_AHEAD = 4


class Readable(Interface):
    """A pair to be read: `lcv.data.record.Record`, or whatever else gives a `Sample`.

    The sample's images may also be float arrays (H, W, 3) in 0 … 255.
    """

    @property
    def name(self) -> str: ...
    @property
    def dataset(self) -> str: ...
    @property
    def scene(self) -> str: ...
    def read(self) -> Sample: ...


class Group(Interface):
    """This process among others, as `lcv.train.distributed.Processes` is."""

    @property
    def rank(self) -> int: ...
    @property
    def world(self) -> int: ...


def evaluate(
    model: nn.Module,
    records: Iterable[Readable],
    protocol: Protocol,
    *,
    device: torch.device | str | None = None,
    processes: Group | None = None,
    progress: Progress | None = None,
    weights: str | os.PathLike[str] | None = None,
    label: str = "",
    output: str | os.PathLike[str] | None = None,
) -> Result:
    """Metrics of a network on pairs, by dataset and by pair.

    records:   with truth, of any number of datasets; each pair has its name only once
    device:    where the network is moved; by default it stays
    processes: those that share the work; every one of them gets the whole result
    progress:  called with the dataset, the pairs done and their number, as this process sees it
    weights:   the file that the network was filled from, for the record
    output:    the file that the result will be written to; pairs that an interrupted run for it
               has finished are not measured again (`lcv.evaluate.finished`)
    """
    records = _checked(records)
    model = as_flow_model(model, "the model")
    if device is not None:
        model.to(usable_device(device))
    device = tensor_of(model).device
    words = None if weights is None else weights_words(weights)
    rank, world = (0, 1) if processes is None else (processes.rank, processes.world)
    mine = warm_units(records, protocol.warm_start)[rank::world]
    log = None if output is None else Finished(output, settings_of(model, protocol), rank)
    known: dict[int, Measured] = {}
    if log is not None:
        said = {index: log.get(records[index]) for unit in mine for index in unit}
        known = {index: (found[0], found[1]) for index, found in said.items() if found is not None}
        mine = [unit for unit in mine if not {*unit} <= {*known}]

    def work() -> dict[int, Measured]:
        for index, found in _measure(network, records, mine, protocol, device, progress):
            known[index] = found
            if log is not None:
                log.add(records[index], found)
        return known

    with evaluating(model, protocol.precision) as network:
        measured = _gather(work, world)
    datasets: dict[str, DatasetResult] = {}
    for dataset in dict.fromkeys(record.dataset for record in records):
        pairs = tuple(
            PairResult(record.name, record.scene, *measured[index])
            for index, record in enumerate(records)
            if record.dataset == dataset
        )
        options = call_options(model, protocol.setting(dataset))
        datasets[dataset] = DatasetResult(
            metrics=metrics_from(pair.sums for pair in pairs),
            pairs=pairs,
            settings={name: options.get(name) for name in ("iters", "pad")},
            model=_model_words(model),
            weights=words,
        )
    origin = provenance(device=device)
    del origin["weights"]  # they are told dataset by dataset
    return Result(datasets, protocol, origin, label)


def _checked(records: Iterable[Readable]) -> list[Readable]:
    records = list(records)
    if not records:
        raise ArgumentError("evaluate: there is no pair to measure; wanted at least one with truth")
    seen = set()
    for record in records:
        if (record.dataset, record.name) in seen:
            raise ArgumentError(
                f"evaluate: the pair {record.name!r} of {record.dataset} is there twice; wanted "
                f"every pair once, so that results can be compared pair by pair"
            )
        seen.add((record.dataset, record.name))
    return records


def _measure(
    network: nn.Module,
    records: Sequence[Readable],
    units: Sequence[Sequence[int]],
    protocol: Protocol,
    device: torch.device,
    progress: Progress | None,
) -> Iterator[tuple[int, Measured]]:
    """The index of each pair of ours with its sums and the hash of its truth."""
    order = [index for unit in units for index in unit]
    firsts = {unit[0] for unit in units}
    datasets = [records[index].dataset for index in order]
    done = dict.fromkeys(datasets, 0)
    call = Caller(network, protocol.warm_start)
    for index, sample in read_ahead(records, order):
        record = records[index]
        name = record.dataset
        image1, image2, truth, valid, occluded, objects = tensors_of(
            record, sample, protocol, device
        )
        output = call(image1, image2, protocol.setting(name), index in firsts)
        flow = stored(output.flow[0], protocol.storage)
        bad = int((valid & ~flow.isfinite().all(0)).sum())
        if bad:
            raise ArgumentError(
                f"{name}, pair {record.name}: the network's flow is not a number at {bad} pixels; "
                f"look at its weights, or evaluate in float32"
            )
        counts = truth, valid, occluded, objects
        yield index, (pair_sums(flow, *counts), _truth_hash(*counts))
        done[name] += 1
        if progress is not None:
            progress(name, done[name], datasets.count(name))


def read_ahead(records: Sequence[Readable], order: Sequence[int]) -> Iterator[tuple[int, Sample]]:
    """Samples in order, the next ones being read while the network works."""
    with ThreadPoolExecutor(2) as readers:
        waiting = [readers.submit(records[index].read) for index in order[:_AHEAD]]
        try:
            for place, index in enumerate(order):
                sample = waiting.pop(0).result()
                if place + _AHEAD < len(order):
                    waiting.append(readers.submit(records[order[place + _AHEAD]].read))
                yield index, sample
        finally:
            for each in waiting:
                each.cancel()


def tensors_of(
    record: Readable, sample: Sample, protocol: Protocol, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Images (1, 3, h, w), truth (2, h, w) and maps (h, w) on the device, as the protocol counts."""
    if sample.flow is None or sample.valid is None:
        raise ArgumentError(
            f"{record.dataset}, pair {record.name}: has no truth, so nothing can be measured on it"
        )
    valid = sample.valid
    if protocol.validity == "not-invalid" and sample.invalid is not None:
        valid = valid & ~sample.invalid
    if protocol.limit is not None:
        valid = valid & (np.abs(sample.flow) < protocol.limit).all(-1)

    def on_device(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.array(array)).to(device)

    image1, image2 = (image_tensor(image, device) for image in (sample.image1, sample.image2))
    occluded = None if sample.occluded is None else on_device(sample.occluded)
    objects = None if sample.objects is None else on_device(sample.objects)
    truth = on_device(sample.flow).movedim(2, 0)
    return image1, image2, truth, on_device(valid), occluded, objects


def _truth_hash(
    truth: Tensor, valid: Tensor, occluded: Tensor | None, objects: Tensor | None
) -> str:
    """Changes with what `pair_sums` takes from the truth, as float32."""
    known = torch.where(valid, truth, 0).float().movedim(0, 2).cpu().numpy()
    parts = [repr(known.shape).encode(), known.tobytes()]
    for name, values in {"valid": valid, "occluded": occluded, "objects": objects}.items():
        if values is not None:
            counted = (valid & (values != 0)).cpu().numpy()
            parts += [name.encode(), np.packbits(counted).tobytes()]
    return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()


def _gather(work: Callable[[], dict[int, Measured]], world: int) -> dict[int, Measured]:
    """What all processes found, on each of them; an error of one is raised by all."""
    if world == 1:
        return work()
    import torch.distributed as dist

    mine: tuple[dict[int, Measured], LcvError | None]
    try:
        mine = work(), None
    except LcvError as error:
        mine = {}, error
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, mine)
    failed = [error for _, error in everyone if error is not None]
    if failed:
        raise failed[0]
    return {index: sums for part, _ in everyone for index, sums in part.items()}


@torch.no_grad()
def _model_words(model: nn.Module) -> dict[str, Any]:
    """How it was built, and whether W is I: a network whose file has no W computes plain costs."""
    spec = getattr(model, "spec", None)
    words = {"name": type(model).__name__} if spec is None else dict(spec.as_dict())
    matrices = [each.matrix() for each in model.modules() if isinstance(each, InnerProduct)]
    words["supervised"] = cast(FlowModel, model).defaults.losses[0] != "unsupervised"
    if matrices:
        words["w_is_identity"] = all(W.equal(torch.eye(len(W)).to(W)) for W in matrices)
    return words

"""Measure a checkpoint on held-out pairs: named metrics over all, and EPE and Fl of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lcv.evaluate.calling import evaluating
from lcv.evaluate.metrics import flow_sums, metrics_of
from lcv.evaluate.run import Readable
from lcv.evaluate.sources import records_in
from lcv.models.types import tensor_of
from lcv.studies.ablation_split import HELD_OUT, held_out_records, procedural_test_pairs
from lcv.train.config import TrainConfig
from lcv.train.kept import Kept, Pair
from lcv.train.validate import PROCEDURAL, read_pairs

PER_PAIR = ("epe", "fl")


def measure(
    model: nn.Module,
    config: TrainConfig,
    tests: dict[str, str],
    count: int,
    device: torch.device,
    kept: Kept | None = None,
) -> dict[str, Any]:
    """By test: `metrics` over all its pairs, and `pairs`: name, scene, EPE and Fl of each.

    tests: by name, "procedural" (`count` pairs) or a dataset's folder or list
    kept:  pairs that were made or read for another network already
    The network runs in float32 or better, without TF32, with the iterations of validation.
    """
    kept = kept or Kept(most=0)
    results = {}
    iters = config.validate_iters
    options = {} if iters is None else {"iters": iters}
    for name, where in tests.items():
        make: Callable[[], Iterable[Pair]]
        if where == PROCEDURAL:
            names = scenes = [str(index) for index in range(count)]
            make = partial(procedural_test_pairs, config, count, device)
        else:
            records: Sequence[Readable] = (
                held_out_records(config.data, where)
                if name == HELD_OUT and config.data.source == "files"
                else records_in([where])
            )
            names = [f"{record.dataset}/{record.name}" for record in records]
            scenes = [record.scene or record.name for record in records]
            make = partial(read_pairs, records, device)
        sums = sums_by_pair(model, kept.pairs(f"test {name}", make), **options)
        alone = [metrics_of(each) for each in sums]
        values = {key: [pair.get(key) for pair in alone] for key in PER_PAIR}
        results[name] = {
            "metrics": metrics_of(sums.sum(0)),
            "pairs": {"names": names, "scenes": scenes, **values},
        }
    return results


def sums_by_pair(model: nn.Module, pairs: Iterable[Pair], **options: Any) -> Tensor:
    """What `flow_sums` gives for each pair alone: (n, sums), on the host."""
    dtype = tensor_of(model).dtype
    sums = []
    with evaluating(model, "float64" if dtype == torch.float64 else "float32") as network:
        for image1, image2, truth, valid in pairs:
            flow = network(image1.to(dtype), image2.to(dtype), **options).flow
            one_by_one = zip(flow.split(1), truth.split(1), valid.split(1), strict=True)
            sums += [flow_sums(*pair) for pair in one_by_one]
    return torch.stack(sums).cpu()

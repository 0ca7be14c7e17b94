"""Metrics of a model in training, on held-out procedural pairs or on any dataset with truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lcv.data.recognise import recognise
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import load_bank, procedural_bank
from lcv.evaluate.metrics import flow_sums, metrics_of
from lcv.train.config import TrainConfig
from lcv.train.distributed import Processes

HELD_OUT_SEED = 2**31  # far from any seed of training
PAIRS = 48

Pair = tuple[Tensor, Tensor, Tensor, Tensor]


def held_out_pairs(config: TrainConfig, device: torch.device) -> Iterator[Pair]:
    """Pairs of the training's kind with textures and scenes that it never sees."""
    data = config.data
    if data.textures is None:
        bank = procedural_bank("held-out", device=str(torch.empty(0, device=device).device))
    else:
        bank = load_bank(data.textures, "held-out", device=device)
    recipe = RECIPES[data.recipe if data.source == "procedural" else "training"]
    seed = HELD_OUT_SEED + config.seed
    for first in range(0, PAIRS, 8):
        made = generate(recipe, seed, range(first, first + 8), data.size, device, textures=bank)
        valid = torch.ones_like(made.occluded)
        yield made.image1, made.image2, made.flow, valid


def file_pairs(folder: str, device: torch.device) -> Iterator[Pair]:
    """The pairs with truth of a dataset on disk."""
    for home, kind in recognise(folder):
        records = (record for part in kind.survey(home).parts for record in part.dataset)
        for record in records:
            sample = record.read()
            if sample.flow is None:
                continue
            arrays = [sample.image1, sample.image2, sample.flow]
            tensors = [torch.from_numpy(np.array(a)).movedim(2, 0)[None].float() for a in arrays]
            valid = torch.from_numpy(np.array(sample.valid))[None, None]
            image1, image2, flow, valid = (x.to(device) for x in (*tensors, valid))
            yield image1, image2, flow, valid


@torch.no_grad()
def validate(
    model: nn.Module, config: TrainConfig, processes: Processes, **options: Any
) -> dict[str, float]:
    """Named metrics, each under the name of its dataset: "procedural/epe", …

    Every module is left in the mode it was in (frozen norms too). Only the first process measures.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    results: dict[str, float] = {}
    for name, where in config.validation.items():
        pairs = (
            held_out_pairs(config, processes.device)
            if where == "procedural"
            else file_pairs(where, processes.device)
        )
        sums = torch.zeros(8, dtype=torch.float64, device=processes.device)
        dtype = next(model.parameters()).dtype
        for image1, image2, flow, valid in pairs:
            output = model(image1.to(dtype), image2.to(dtype), **options)
            sums += flow_sums(output.flow, flow, valid)
        results |= {f"{name}/{key}": value for key, value in metrics_of(sums).items()}
    for module, training in modes.items():
        module.training = training
    return results

"""Which columns of an ablation are null controls: measured, not deduced from the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch

from lcv.models.build import build
from lcv.models.types import FlowModel
from lcv.studies.columns import Column
from lcv.train.config import ModelConfig
from lcv.train.optim import w_parameters


def null_controls(model: ModelConfig, columns: Sequence[Column]) -> tuple[str, ...]:
    """The names of columns that compute, in exact arithmetic, what "continued" computes.

    "P only" does where channels are summed, since PᵀP = I. It is measured in float64: does a random P
    change the flow of a random pair? All parameters are moved a little first, away from zeros.
    """
    rotations = [column for column in columns if column.inner_product == "rotation"]
    return tuple(column.name for column in rotations if not _changes_flow(model, column))


@torch.no_grad()
def _changes_flow(model: ModelConfig, column: Column) -> bool:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build(model.name, column.inner_product, **{**model.options, **column.options})
        network.double().eval()
        for parameter in network.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
        side = max(128, cast(FlowModel, network).least_side)
        images = 255 * torch.rand(2, 1, 3, side, side, dtype=torch.float64)
        iterates = cast(FlowModel, network).defaults.iters is not None
        options = {"iters": 2} if iterates else {}
        before = network(*images, **options).flow
        for parameter in w_parameters(network):
            parameter.normal_()
        after = network(*images, **options).flow
    # Rounding in float64 stays far below this share. Zero flow or NaN proves nothing: not marked.
    return not bool((after - before).norm() < 1e-8 * before.norm())

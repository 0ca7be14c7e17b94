"""The network of a run: built, filled, and what its configuration owes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from torch import nn

from lcv.errors import ArgumentError
from lcv.models.archive import read_checkpoint
from lcv.models.build import build, fill_from, find, spec_of
from lcv.models.types import FlowModel
from lcv.train.config import TrainConfig


def make_model(config: TrainConfig) -> tuple[nn.Module, list[str]]:
    """The network, filled if the configuration names weights, and what there is to say of them."""
    model = build(config.model.name, config.model.inner_product, **config.model.options)
    known = cast(FlowModel, model).defaults.losses
    if config.loss.name not in known:
        raise ArgumentError(
            f"loss.name is {config.loss.name!r}, but {config.model.name} can be trained with "
            f"{' or '.join(known)}"
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ArgumentError(
            f"model.name: {config.model.name} has no parameters, so there is nothing to train"
        )
    if config.model.weights is None:
        return model, []
    return model, fill_from(model, read_checkpoint(find(config.model.weights)))


def settled(config: TrainConfig, model: nn.Module) -> tuple[TrainConfig, list[str]]:
    """The configuration with what follows from its network, and what there is to say of it.

    The hash of a factory's source is put in, so that a run does not go on with another one.
    Iterations are left out for a network that has none.
    """
    config = replace(config, model=replace(config.model, source=spec_of(model).source))
    iterates = cast(FlowModel, model).defaults.iters is not None
    if iterates or (config.loss.iters is None and config.validate_iters is None):
        return config, []
    note = f"{config.model.name} does not iterate: loss.iters and validate_iters are left out"
    return replace(config, loss=replace(config.loss, iters=None), validate_iters=None), [note]


def freeze_batch_norm(model: nn.Module) -> None:
    """Statistics as they are; scale and shift still learn."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()

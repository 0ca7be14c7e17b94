"""How a protocol calls a network: iterations, padding, precision, warm start, and what is stored."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.data.formats.kitti import SCALE, ZERO
from lcv.errors import ArgumentError
from lcv.evaluate.protocols import Setting
from lcv.models.types import FlowModel, FlowOutput, in_evaluation, tensor_of


def usable_device(device: torch.device | str) -> torch.device:
    """The device, or a sentence about why it cannot be used here."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(f"device {str(device)!r} cannot be used here: {reason}") from None


def image_tensor(image: np.ndarray, device: torch.device) -> Tensor:
    """(H, W, 3) → (1, 3, H, W) on the device, as the network takes it."""
    # Copied, since a reader's array may be one that must not be written to.
    return torch.from_numpy(np.array(image)).to(device).movedim(2, 0)[None]


def call_options(model: nn.Module, setting: Setting) -> dict[str, Any]:
    """What a network is called with: iterations and padding if it takes them, else nothing."""
    defaults = cast(FlowModel, model).defaults
    options: dict[str, Any] = {}
    if defaults.iters is not None:
        options["iters"] = setting.iters or defaults.iters
    if defaults.pads:
        options["pad"] = setting.pad or defaults.pads[0]
    return options


def check_warm_start(model: nn.Module) -> None:
    """Refuse a warm start of a network that cannot begin with a given flow."""
    if not cast(FlowModel, model).takes_flow_init:
        raise ArgumentError(
            f"warm start: a {type(model).__name__} takes no flow to start from; leave it out, or use "
            f"a network that does, such as raft-large"
        )


def warm_units(records: Sequence[Any], warm_start: bool) -> list[list[int]]:
    """Indices that must be called one after another: single pairs, or with warm start whole scenes.

    A pair follows the one before it if it begins with the frame that that one ends with.
    """
    units: list[list[int]] = []
    for index, record in enumerate(records):
        before = getattr(records[index - 1], "image2", None) if index else None
        if warm_start and before is not None and before == getattr(record, "image1", None):
            units[-1].append(index)
        else:
            units.append([index])
    return units


class Caller:
    """A network, called pair by pair; with warm start it remembers where the last pair ended."""

    def __init__(self, model: nn.Module, warm_start: bool) -> None:
        if warm_start:
            check_warm_start(model)
        self.model = model
        self.warm_start = warm_start
        self.low: Tensor | None = None

    def __call__(self, image1: Tensor, image2: Tensor, setting: Setting, first: bool) -> FlowOutput:
        """first: whether a new scene begins, whose flow is not started from that of the old."""
        options = call_options(self.model, setting)
        if self.warm_start and not first and self.low is not None:
            options["flow_init"] = forward_interpolate(self.low)
        output: FlowOutput = self.model(image1, image2, **options)
        self.low = output.low
        return output


def stored(flow: Tensor, storage: str) -> Tensor:
    """Flow as it is after it was stored in the way the protocol names."""
    if storage == "exact":
        return flow
    # In float64, as the writer of a file does it: 64 u + 2^15 in float32 loses bits that count.
    levels = flow.double() * SCALE + ZERO
    levels = levels.round() if storage == "kitti-rounded" else levels.floor()
    return (levels.clamp(0, 2**16 - 1) - ZERO) / SCALE


@contextmanager
def evaluating(model: nn.Module, precision: str) -> Iterator[nn.Module]:
    """The network in evaluation mode and in this precision; every module is put back after.

    "float32" is without TF32, which torch would otherwise use in a GPU's convolutions.
    """
    network = copy.deepcopy(model).double() if precision == "float64" else model
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    flags = products.allow_tf32, convolutions.allow_tf32
    try:
        products.allow_tf32 = convolutions.allow_tf32 = precision == "tf32"
        with ExitStack() as stack:
            stack.enter_context(in_evaluation(network))
            stack.enter_context(torch.no_grad())
            if precision in ("bfloat16", "float16"):
                kind = tensor_of(model).device.type
                stack.enter_context(torch.autocast(kind, getattr(torch, precision)))
            yield network
    finally:
        products.allow_tf32, convolutions.allow_tf32 = flags

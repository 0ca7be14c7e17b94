"""Compiled parts of a network, and the sequence loss, for training steps and for those alone.

A step sees the same shapes every time, so its convolutional parts can be compiled for exactly these.
Validation sees others and would compile anew for each; it keeps the plain forwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from lcv.errors import ArgumentError
from lcv.losses.sequence import sequence_loss
from lcv.models.types import is_flow_model


class Compiled:
    """The compiled forwards of a network's parts.

    They stand in for the plain ones within `with compiled.active():`. Names and values in the
    state dict stay as they are; parameters take the channels-last layout.

    sequence_loss: all its predictions in a few kernels
    """

    def __init__(self, model: nn.Module) -> None:
        parts = model.parts_to_compile() if is_flow_model(model) else []
        if not parts:
            raise ArgumentError(
                f"compile: nothing in a {type(model).__name__} is known to gain by it. Leave it off."
            )
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._stand_ins: list[tuple[nn.Module, str, Any]] = [
            (part, name, torch.compile(getattr(part, name), dynamic=False)) for part, name in parts
        ]
        self.sequence_loss = torch.compile(sequence_loss, dynamic=False)

    @contextmanager
    def active(self) -> Iterator[None]:
        for part, name, stand_in in self._stand_ins:
            setattr(part, name, stand_in)
        try:
            yield
        finally:
            for part, name, _ in self._stand_ins:
                delattr(part, name)  # the class's own is seen again

"""The moving average of a network's weights (EMA): smoother than the weights of any one step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.inner_product import Riemannian
from lcv.models.wrapped import copied


class Average:
    """A network whose weights and norm statistics follow those of the one that learns.

        average += (1 − d) · (weights − average),   d = min(decay, (1 + n) / (10 + n)) at step n

    so that the first steps are soon forgotten. It is updated on the device without waiting for it,
    and so can be captured in a CUDA graph.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        if any(isinstance(module, Riemannian) for module in model.modules()):
            raise ArgumentError(
                "ema: the mean of rotations is no rotation, so a riemannian W has no average; set ema "
                "to 0, or choose another inner product"
            )
        self.model = copied(model).requires_grad_(False)
        self.decay = decay
        first = next(model.parameters())
        self._share = torch.zeros((), dtype=first.dtype, device=first.device)
        pairs = list(
            zip(self.model.state_dict().values(), model.state_dict().values(), strict=True)
        )
        self._own, self._new = zip(*(p for p in pairs if p[0].is_floating_point()), strict=True)
        self._counters = [p for p in pairs if not p[0].is_floating_point()]

    def set_share(self, step: int) -> None:
        """Put on the device how much of the new weights enters; step: counted from the start."""
        self._share.fill_(1 - min(self.decay, (1 + step) / (10 + step)))

    def update(self, skip: Tensor) -> None:
        """Follow one step; where `skip`, a scalar on the device, is 1, nothing moves."""
        differences = torch._foreach_sub(self._new, self._own)
        torch._foreach_mul_(differences, self._share * (1 - skip))
        torch._foreach_add_(self._own, differences)
        for own, new in self._counters:
            own.copy_(new)

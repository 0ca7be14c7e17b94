"""Parameter groups with W apart, rates as a function of the step, and updates that can be skipped.

Rates live on the device and an update is skipped by a flag on the device, so that a step waits for
nothing and can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from lcv.errors import ArgumentError
from lcv.inner_product import InnerProduct, Riemannian, StiefelSGD
from lcv.train.config import OptimConfig

START = 1 / 25  # of the peak: where one_cycle begins
END = START * 1e-4  # and where it ends, as torch's own does


def rate_at(config: OptimConfig, step: int, steps: int, first: int = 0) -> float:
    """The learning rate of a step, counted from 0; `first`: the first one that is taken.

    linear      lr at step 0 to lr_end at `steps`; over a share `warmup` of the steps after `first`,
                which has 1/25 of it, up to all of it
    constant    lr
    steps       lr / 2ⁿ, n drops so far since the last restart
    one_cycle   lr/25 up to lr over a share `warmup`, then down to lr/250,000 at the last of
                steps + tail; linear, torch's OneCycleLR
    """
    if config.schedule == "constant":
        return config.lr
    if config.schedule == "steps":
        begun = max((restart for restart in config.restarts if restart <= step), default=0)
        return config.lr * 0.5 ** sum(begun < drop <= step for drop in config.drops)
    if config.schedule == "linear":
        rate, rise = config.lr + (config.lr_end - config.lr) * step / steps, config.warmup * steps
        return rate * min(1.0, START + (1 - START) * (step - first) / rise) if rise else rate
    last = steps + config.tail - 1
    peak = max(config.warmup * (last + 1) - 1, 0.0)
    if step < peak:
        return config.lr * (START + (1 - START) * step / peak)
    return config.lr * (1 + (END - 1) * (step - peak) / max(last - peak, 1.0))


def w_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of all inner products."""
    products = [m for m in model.modules() if isinstance(m, InnerProduct)]
    return [p for product in products for p in product.parameters()]


class Optimisers:
    """One optimiser of two groups, W and the rest; and the Stiefel manifold's, where it is needed."""

    def __init__(
        self,
        model: nn.Module,
        config: OptimConfig,
        steps: int,
        capturable: bool = False,
        first: int = 0,
    ) -> None:
        self.config, self.steps, self.first = config, steps, first
        of_w = {id(p) for p in w_parameters(model)}
        on_manifold = [m.P for m in model.modules() if isinstance(m, Riemannian)]
        apart = {id(p) for p in on_manifold}
        rest = [p for p in model.parameters() if id(p) not in of_w and p.requires_grad]
        w = [p for p in w_parameters(model) if id(p) not in apart]
        if config.w_alone and not of_w:
            raise ArgumentError("optim.w_alone: the model's inner product has no parameters")
        if config.w_alone:
            for p in rest:
                p.requires_grad_(False)
            rest = []
        device = next(model.parameters()).device
        self.rates = {name: torch.zeros((), device=device) for name in ("rest", "w")}
        groups = [
            {"params": rest, "lr": self.rates["rest"], "weight_decay": config.weight_decay},
            {"params": w, "lr": self.rates["w"], "weight_decay": config.w_weight_decay},
        ]
        groups = [group for group in groups if group["params"]]
        self.all: list[Optimizer] = []
        if config.optimiser == "sgd":
            self.all.append(SGD(groups, lr=self.rates["rest"], fused=True))
        else:
            adamw = AdamW(
                groups,
                lr=self.rates["rest"],
                betas=(0.9, config.beta2),
                eps=config.eps,
                fused=True,
                capturable=capturable,
            )
            self.all.append(adamw)
        if on_manifold:
            self.all.append(StiefelSGD(on_manifold, lr=0.0, momentum=0.9))
        self.parameters: Sequence[nn.Parameter] = [*rest, *w, *on_manifold]

    def set_rates(self, step: int) -> None:
        """Put this step's rates on the device."""
        rate = rate_at(self.config, step, self.steps, self.first)
        waiting = step < self.config.w_from_step
        w = 0.0 if waiting else rate * self.config.w_lr_factor
        self.rates["rest"].fill_(rate)
        self.rates["w"].fill_(w)
        for optimiser in self.all[1:]:
            for group in optimiser.param_groups:
                group["lr"] = w

    def update(self, skip: Tensor) -> None:
        """One update; where `skip`, a scalar on the device, is 1, nothing moves."""
        before = [
            p.detach().clone() for o in self.all[1:] for g in o.param_groups for p in g["params"]
        ]
        for optimiser in self.all:
            optimiser.found_inf = skip  # type: ignore[attr-defined]
            optimiser.step()
        after = [p for o in self.all[1:] for g in o.param_groups for p in g["params"]]
        for old, new in zip(before, after, strict=True):
            new.data.copy_(torch.where(skip > 0, old, new.data))

    def zero_grad(self) -> None:
        for optimiser in self.all:
            optimiser.zero_grad(set_to_none=False)

    def state(self) -> list[dict[str, object]]:
        return [optimiser.state_dict() for optimiser in self.all]

    def load(self, states: list[dict[str, object]]) -> None:
        for optimiser, state in zip(self.all, states, strict=True):
            optimiser.load_state_dict(state)
        # Loading replaces the groups' rates by copies; the ones that `set_rates` fills come back.
        groups = self.all[0].param_groups
        names = ["rest", "w"] if len(groups) == 2 else ["w" if self.config.w_alone else "rest"]
        for group, name in zip(groups, names, strict=True):
            group["lr"] = self.rates[name]

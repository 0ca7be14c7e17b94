"""Train one network on one painted pair, as the tests in CI and the larger grid on a GPU do."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lcv.inner_product import Riemannian, StiefelSGD
from lcv.losses.multiscale import multiscale_loss
from lcv.losses.sequence import sequence_loss
from lcv.models.build import build
from lcv.models.types import FlowOutput
from testing.painted import painted_pair

# size, learning rate, options of the call
SETTINGS = {
    "raft-large": ((64, 96), 1e-3, {"iters": 3}),
    "raft-small": ((64, 64), 2e-3, {"iters": 3}),
    "vcn": ((65, 65), 2e-3, {}),
    "vcn-small": ((65, 65), 2e-3, {}),
    "ddflow": ((64, 96), 1e-3, {}),
}


@dataclass(frozen=True)
class Overfitted:
    first: float
    last: float
    zero: float
    steps: int
    matrix: Tensor


def overfit(
    name: str,
    kind: str,
    most_steps: int = 200,
    goal: float = 0.1,
    device: str = "cpu",
    size: tuple[int, int] | None = None,
    beat_zero: bool = False,
) -> Overfitted:
    """EPE at the first and the last step; stops once it is below `goal` times the first.

    beat_zero: and below `goal` times the error of zero flow; some networks start far above it.
    """
    torch.manual_seed(0)
    small_size, lr, options = SETTINGS[name]
    image1, image2, flow = (x.to(device) for x in painted_pair(*(size or small_size)))
    form = {"form": "left"} if kind == "free" else {}
    model = build(name, kind, **form).to(device).train()
    optimisers = make_optimisers(model, lr)
    valid = torch.ones_like(flow[:, :1], dtype=torch.bool)
    zero = flow.norm(dim=1).mean().item()
    first = last = float("nan")
    for step in range(most_steps):
        output = model(image1, image2, **options)
        last = (output.flow - flow).norm(dim=1).mean().item()
        first = last if step == 0 else first
        if last < goal * (min(first, zero) if beat_zero else first):
            break
        loss_of(name, output, flow, valid).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
    return Overfitted(first, last, zero, step, model.inner_product.matrix().detach().cpu())


def make_optimisers(model: nn.Module, lr: float) -> list[torch.optim.Optimizer]:
    """Adam, and on the Stiefel manifold its own."""
    on_manifold = [m.P for m in model.modules() if isinstance(m, Riemannian)]
    apart = {id(P) for P in on_manifold}
    ordinary = [p for p in model.parameters() if id(p) not in apart]
    optimisers: list[torch.optim.Optimizer] = [torch.optim.Adam(ordinary, lr=lr)]
    if on_manifold:
        optimisers.append(StiefelSGD(on_manifold, lr=lr, momentum=0.9))
    return optimisers


def loss_of(name: str, output: FlowOutput, flow: Tensor, valid: Tensor) -> Tensor:
    """The network's own supervised loss; DDFlow, which has none, takes RAFT's over its levels."""
    if name.startswith("vcn"):
        return multiscale_loss(output.flows, flow, valid, **output.extra)
    return sequence_loss(output.flows, flow, valid)

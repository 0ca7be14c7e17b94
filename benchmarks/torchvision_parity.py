"""Our RAFT beside torchvision's, where torchvision is installed: the same flow, and LCV on theirs.

    python benchmarks/torchvision_parity.py [--weights raft-sintel.pth] [--device cuda]

Three statements, each measured, exit code 1 if one fails:
 1. the same weights under torchvision's names give torchvision's flow, within 1e-3 px mean;
 2. `lcv.attach` on torchvision's raft_large changes no output at W = I;
 3. it trains there (W leaves I, the loss falls), and `lcv.fold` takes it out within 1e-3 px mean.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import lcv
from lcv.models.raft.names import torchvision_name

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from testing.painted import painted_pair

BOUND = 1e-3


def scaled(image: Tensor) -> Tensor:
    """torchvision's network takes [−1, 1] where ours takes 0 … 255."""
    return image * (2 / 255) - 1


def mean_difference(one: Tensor, other: Tensor) -> float:
    return (one - other).norm(dim=1).mean().item()


@torch.no_grad()
def same_flow(name: str, ours: nn.Module, theirs: nn.Module, pair: list[Tensor]) -> bool:
    theirs.load_state_dict({torchvision_name(k): v for k, v in ours.state_dict().items()})
    theirs.eval()
    flow = ours(*pair, iters=12).flow
    other = theirs(*map(scaled, pair), num_flow_updates=12)[-1]
    difference = mean_difference(flow, other)
    print(
        f"{name:<12} mean |flow| {flow.norm(dim=1).mean():.2f} px, differs by {difference:.1e} px"
    )
    return difference <= BOUND


def attached(theirs: nn.Module, pair: list[Tensor], flow: Tensor, steps: int) -> bool:
    images = [scaled(image) for image in pair]
    with torch.no_grad():
        before = theirs(*images)[-1]
        with_lcv = lcv.attach(theirs)
        at_start = mean_difference(with_lcv(*images)[-1], before)
    print(f"attach       at W = I the flow differs by {at_start:.1e} px")

    product = with_lcv.feature_encoder.inner_product
    optimiser = torch.optim.AdamW(with_lcv.parameters(), lr=1e-4)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        predictions = with_lcv(*images)
        n = len(predictions)
        loss = sum(0.8 ** (n - 1 - i) * (p - flow).abs().mean() for i, p in enumerate(predictions))
        loss.backward()
        nn.utils.clip_grad_norm_(with_lcv.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    W = product.matrix().detach()
    away = (W - torch.eye(len(W), device=W.device)).abs().max().item()
    print(
        f"train        loss {losses[0]:.2f} → {losses[-1]:.2f} in {steps} steps, |W − I| {away:.1e}"
    )

    with torch.no_grad():
        product.t.add_(0.3 * torch.randn_like(product.t))
        product.S_upper.add_(0.05 * torch.randn_like(product.S_upper))
        unfolded = with_lcv(*images)[-1]
        folded = lcv.fold(with_lcv)
        after = mean_difference(folded(*images)[-1], unfolded)
    same_names = set(folded.state_dict()) == set(theirs.state_dict())
    print(
        f"fold         a strong W folded differs by {after:.1e} px, names as before: {same_names}"
    )
    return (
        at_start == 0 and losses[-1] < losses[0] and away > 1e-4 and after <= BOUND and same_names
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", help="a RAFT-large checkpoint; random weights if absent")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", type=int, nargs=2, default=(368, 496))
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()

    import torchvision
    from torchvision.models.optical_flow import raft_large, raft_small

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, {options.device}, fp32"
    )
    image1, image2, flow = (x.to(options.device) for x in painted_pair(*options.size))
    pair = [image1, image2]
    if options.weights:
        ours = lcv.load("raft-large", weights=options.weights, inner_product="euclidean")
    else:
        ours = lcv.build("raft-large", "euclidean").eval()
    small = lcv.build("raft-small", "euclidean").eval()
    theirs, theirs_small = raft_large(weights=None), raft_small(weights=None)
    for model in (ours, small, theirs, theirs_small):
        model.to(options.device)
    held = [
        same_flow("raft_large", ours, theirs, pair),
        same_flow("raft_small", small, theirs_small, pair),
        attached(theirs, pair, flow, options.steps),
    ]
    print("all hold" if all(held) else "FAILED")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

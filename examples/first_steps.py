"""What the module does, in four statements and a picture: `python examples/first_steps.py [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import lcv
from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import orthogonalising_matrix, summarise
from lcv.visual.inner_product_plots import two_vectors_figure


@torch.no_grad()
def main(folder: Path) -> None:
    torch.manual_seed(0)
    image1, image2 = 255 * torch.rand(2, 1, 3, 128, 160)
    vanilla = lcv.build("raft-small", inner_product="euclidean").eval()
    with_lcv = lcv.attach(vanilla)
    flow = vanilla(image1, image2).flow
    same = torch.equal(with_lcv(image1, image2).flow, flow)
    print(f"1. LCV put into RAFT at W = I: the flow is the same to the last bit: {same}")

    product = with_lcv.inner_product
    product.t.normal_(std=0.5)
    product.S_upper.normal_(std=0.1)
    W = product.matrix()
    summary = summarise(W, product.rotation())
    low, high = summary.eigenvalues[0], summary.eigenvalues[-1]
    print(f"2. Any S and t give a W that is symmetric ({torch.equal(W, W.mT)}) and positive:")
    print(f"   eigenvalues {low:.2f} … {high:.2f}, P turns by up to {summary.angles[-1]:.2f} rad")

    moved = with_lcv(image1, image2).flow
    print(f"3. Such a W changes the flow, here by up to {(moved - flow).abs().max():.2f} px,")
    folded = lcv.fold(with_lcv)(image1, image2).flow
    print(f"   and folds into RAFT's encoder: {(folded - moved).abs().max():.0e} px from it")

    folder.mkdir(parents=True, exist_ok=True)
    print(f"4. Two vectors made orthogonal, the paper's figure 1: {figure_1(folder)}")


def figure_1(folder: Path) -> Path:
    """Standard against elliptical inner product, drawn from our own numbers."""
    a, b = torch.tensor([1.15, 0.25]).double(), torch.tensor([0.55, 0.95]).double()
    product = elliptical_from_matrix(orthogonalising_matrix(a, b))
    path = folder / "figure-1.png"
    figure = two_vectors_figure(a, b, product.matrix(), product.factor_matrix())
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out"))

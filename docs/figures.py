"""Draw the pictures of the documentation: `python docs/figures.py [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import orthogonalising_matrix
from lcv.visual.inner_product_plots import two_vectors_figure


def figure_1(folder: Path) -> Path:
    """Standard against elliptical inner product: two vectors made orthogonal."""
    a = torch.tensor([1.15, 0.25], dtype=torch.float64)
    b = torch.tensor([0.55, 0.95], dtype=torch.float64)
    product = elliptical_from_matrix(orthogonalising_matrix(a, b))
    path = folder / "figure-1.png"
    figure = two_vectors_figure(a, b, product.matrix(), product.factor_matrix())
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (figure_1,):
        print(draw(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")

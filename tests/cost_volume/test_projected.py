"""The volume whose channels are activated and projected: by hand, and one backend as the other."""

from __future__ import annotations

import pytest
import torch

from lcv.cost_volume.projected import projected_cost_volume
from lcv.errors import ArgumentError, BackendError, ShapeError

BACKENDS = ["reference", "torch"]


def inputs(c: int = 3, o: int = 2, size: tuple[int, int] = (4, 5)) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(c)
    shapes = ((2, c, *size), (2, c, *size), (o, c))
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_by_hand(backend: str) -> None:
    """Two channels, one positive and one negative product, with the pixel to the right."""
    f1 = torch.tensor([2.0, -3.0]).view(1, 2, 1, 1).expand(1, 2, 1, 2)
    f2 = torch.tensor([[1.0, 5.0], [1.0, 7.0]]).view(1, 2, 1, 2)
    weight = torch.tensor([[1.0, 10.0], [0.0, 1.0], [1.0, 0.0]])
    out = projected_cost_volume(f1, f2, weight, (3, 1), slope=0.5, backend=backend)
    assert out.shape == (1, 3, 3, 1, 1, 2)
    # Of the left pixel: nothing to its left, itself, then its neighbour 5, 7.
    assert out[0, :, :, 0, 0, 0].tolist() == [[0, 2 - 15, 10 - 105], [0, -1.5, -10.5], [0, 2, 10]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_the_formula(backend: str) -> None:
    f1, f2, weight = inputs()
    out = projected_cost_volume(f1, f2, weight, (5, 3), slope=0.1, backend=backend)
    wanted = torch.zeros(2, 2, 5, 3, 4, 5, dtype=torch.float64)
    for i in range(5):
        for j in range(3):
            for y in range(4):
                for x in range(5):
                    row, column = y + j - 1, x + i - 2
                    if 0 <= row < 4 and 0 <= column < 5:
                        product = f1[:, :, y, x] * f2[:, :, row, column]
                        active = product.clamp(min=0) + 0.1 * product.clamp(max=0)
                        wanted[:, :, i, j, y, x] = active @ weight.mT
    torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    tensors = [x.requires_grad_() for x in inputs(2, 2, (3, 2))]
    assert torch.autograd.gradcheck(
        lambda *x: projected_cost_volume(*x, (3, 3), slope=0.1, backend=backend), tensors
    )


def test_refusals() -> None:
    f1, f2, weight = inputs()
    with pytest.raises(ShapeError, match="projected_cost_volume: weight has c=2 but f1 has c=3"):
        projected_cost_volume(f1, f2, weight[:, :2], (3, 3), slope=0.1)
    with pytest.raises(ShapeError, match="projected_cost_volume: f2 has w=4 but f1 has w=5"):
        projected_cost_volume(f1, f2[..., 1:], weight, (3, 3), slope=0.1)
    with pytest.raises(ArgumentError, match="projected_cost_volume: window has u=2"):
        projected_cost_volume(f1, f2, weight, (2, 3), slope=0.1)
    with pytest.raises(BackendError, match="projected_cost_volume: unknown backend 'cuda'"):
        projected_cost_volume(f1, f2, weight, (3, 3), slope=0.1, backend="cuda")

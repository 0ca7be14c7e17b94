"""Erased rectangles: their bounds, and their colour."""

from __future__ import annotations

import torch

from lcv.data.augment import reference
from lcv.data.augment.means import UNIT
from lcv.data.augment.occlusion import Rectangles, draw_rectangles, erase
from lcv.data.augment.recipes import Eraser
from lcv.data.random import Draws


def test_rectangles_keep_their_bounds() -> None:
    n = 4000
    r = draw_rectangles(Eraser(), Draws(2, range(n)), torch.full((n,), 40), torch.full((n,), 70))
    assert r.top.unique().tolist() == list(range(40))
    assert r.left.unique().tolist() == list(range(70))
    assert r.height.unique().tolist() == r.width.unique().tolist() == list(range(50, 100))
    number = r.is_used.sum(1)
    shares = [float((number == k).double().mean()) for k in range(3)]
    assert all(abs(s - p) < 0.03 for s, p in zip(shares, (0.5, 0.25, 0.25), strict=True))


def test_equals_slices_painted_one_by_one() -> None:
    image = 255 * torch.rand(2, 3, 9, 14, dtype=torch.float64)
    r = Rectangles(
        torch.tensor([[2, 7], [0, 0]]),
        torch.tensor([[10, 1], [3, 0]]),
        torch.tensor([[3, 6], [4, 9]]),
        torch.tensor([[8, 2], [5, 14]]),
        torch.tensor([[True, True], [True, False]]),
    )
    inside = torch.ones(2, 9, 14, dtype=torch.bool)
    inside[1, :, 12:] = False
    out = erase(image, inside, r)
    first = reference.erase(image[0], [(2, 10, 3, 8), (7, 1, 6, 2)])
    second = reference.erase(image[1, :, :, :12], [(0, 3, 4, 5)])
    torch.testing.assert_close(out[0], first, rtol=0, atol=1 / UNIT)
    torch.testing.assert_close(out[1, :, :, :12], second, rtol=0, atol=1 / UNIT)

"""Maps between layers and frames: what they are at a point, and that they invert."""

from __future__ import annotations

import math

import pytest
import torch

from lcv.data.synthetic.maps import (
    RIM,
    affine_inverse,
    apply_bend,
    apply_map,
    homography,
    plane,
    profile,
    roll_back,
    roll_forward,
    undo_bend,
)


def test_a_map_is_nine_numbers_row_by_row_on_points_and_on_a_grid():
    numbers = torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 0.1, 0.2, 0.9])
    x, y = apply_map(torch.tensor([1.0]), torch.tensor([10.0]), numbers, True)
    assert x.item() == pytest.approx(37 / 3)
    assert y.item() == pytest.approx(130 / 3)
    row, column = torch.arange(4.0)[None], torch.arange(3.0)[:, None]
    for perspective in (True, False):
        on_grid = apply_map(row, column, numbers, perspective)
        points = (row.expand(3, 4), column.expand(3, 4))
        on_points = apply_map(*points, numbers, perspective)
        assert torch.allclose(torch.stack(on_grid), torch.stack(on_points), rtol=1e-6)
    assert torch.equal(plane(row, column, numbers[:3]), 2 * row + 3 * column + 5)


def test_an_affine_map_is_a_homography_that_divides_by_one():
    affine = torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0, 13.0], dtype=torch.float64)
    x, y = torch.randn(2, 50, dtype=torch.float64)
    there = apply_map(x, y, homography(affine), True)
    assert torch.equal(torch.stack(there), torch.stack(apply_map(x, y, homography(affine), False)))
    back = apply_map(*there, homography(affine_inverse(affine)), True)
    assert torch.allclose(torch.stack(back), torch.stack((x, y)), atol=1e-12)


def test_a_bend_is_undone_exactly():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    # Three shears of three octaves; e is at right angles to f.
    f = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    bend = 0.3 * torch.stack((-f[:, 1], f[:, 0]), 1)
    rest = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    wave = torch.cat((f, rest), 1)
    there = apply_bend(u, v, bend, wave)
    assert (there[0] - u).abs().max() > 0.1
    assert torch.allclose(torch.stack(undo_bend(*there, bend, wave)), torch.stack((u, v)))


def test_a_shear_by_hand_at_one_point():
    bend = torch.tensor([[0.3, 0.0], [0.0, -0.2]])
    wave = torch.tensor([[0.0, 2.0, 0.3], [3.0, 0.0, -1.0]])
    u, v = apply_bend(torch.tensor(0.5), torch.tensor(-0.25), bend, wave)
    bent = 0.5 + 0.3 * math.sin(2 * -0.25 + 0.3)
    assert u.item() == pytest.approx(bent)
    assert v.item() == pytest.approx(-0.25 - 0.2 * math.sin(3 * bent - 1))


def test_octaves_are_multiples_of_the_angle():
    form = torch.tensor([1.5, -0.5, 0.2, 0.7, -0.3, 0.4, 0.1], dtype=torch.float64)
    u, v = torch.randn(2, 20, dtype=torch.float64)
    theta = 1.5 * u - 0.5 * v + 0.2
    expected = theta.sin() + 0.7 * (2 * theta).sin() - 0.3 * (2 * theta).cos()
    expected += 0.4 * (4 * theta).sin() + 0.1 * (4 * theta).cos()
    assert torch.allclose(profile(u, v, form), expected)


def test_a_cylinder_turns_by_the_angle_and_back():
    # u = tan(α/2)/2: points from −80° to 80°, turned by 30°, appear at sin(α + 30°).
    alpha = torch.linspace(-80, 80, 33, dtype=torch.float64).deg2rad()
    roll = torch.tensor([1.0, math.tan(math.radians(15))], dtype=torch.float64)
    seen, away = roll_forward((alpha / 2).tan() / 2, roll)
    turned = alpha + math.radians(30)
    assert torch.allclose(seen, turned.sin())
    assert torch.equal(away > 0, turned.abs() > math.asin(RIM))
    back, inside = roll_back(seen, roll)
    front = away == 0
    assert torch.allclose(back[front], ((alpha / 2).tan() / 2)[front])
    assert torch.allclose(inside, RIM - seen.abs())
    # What is no cylinder is left alone.
    flat = torch.tensor([0.0, 0.3], dtype=torch.float64)
    assert torch.equal(roll_forward(alpha, flat)[0], alpha)
    assert torch.equal(roll_back(alpha, flat)[0], alpha)
    assert (roll_back(alpha, flat)[1] == 1).all()

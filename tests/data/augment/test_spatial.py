"""Placements: bounds of what is drawn, flips and crops by hand, exact copies."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lcv.data.augment.recipes import RAFT_CHAIRS, Geometry
from lcv.data.augment.spatial import (
    Axis,
    Placement,
    draw_placement,
    place_dense,
    power_of_two,
    resample,
)
from lcv.data.random import Draws


def _axis(length: int, scale: float = 1.0, flip: bool = False, offset: int = 0) -> Axis:
    return Axis(
        torch.tensor([scale], dtype=torch.float64),
        torch.tensor([length]),
        torch.tensor([round(length * scale)]),
        torch.tensor([flip]),
        torch.tensor([offset]),
    )


def _place(y: Axis, x: Axis) -> Placement:
    return Placement(y, x, (y.scale != 1) | (x.scale != 1))


def _draw(geometry: Geometry, n: int, h: int, w: int) -> Placement:
    return draw_placement(geometry, Draws(3, range(n)), torch.full((n,), h), torch.full((n,), w))


def test_powers_of_two_are_those_of_python() -> None:
    exponents = torch.linspace(-2, 2, 101)
    truth = torch.tensor([2.0 ** float(e) for e in exponents], dtype=torch.float64)
    torch.testing.assert_close(power_of_two(exponents), truth, rtol=1e-14, atol=0)
    assert power_of_two(torch.zeros(1)).item() == 1.0


def test_crop_and_flip_by_hand() -> None:
    source = torch.arange(12.0).view(1, 1, 3, 4)
    crop = (2, 3)
    plain = resample(source, _place(_axis(3, offset=1), _axis(4, offset=1)), crop)
    assert plain[0, 0].tolist() == [[5, 6, 7], [9, 10, 11]]
    left = resample(source, _place(_axis(3), _axis(4, flip=True, offset=1)), crop)
    assert left[0, 0].tolist() == [[2, 1, 0], [6, 5, 4]]
    up = resample(source, _place(_axis(3, flip=True), _axis(4, offset=1)), crop)
    assert up[0, 0].tolist() == [[9, 10, 11], [5, 6, 7]]


def test_resize_then_flip_then_crop_by_hand() -> None:
    source = torch.tensor([0.0, 8.0]).view(1, 1, 1, 2)
    placement = _place(_axis(1), _axis(2, scale=2.0, flip=True, offset=1))
    # Resized 0 2 6 8, flipped 8 6 2 0, from the second on 6 2 0.
    assert resample(source, placement, (1, 3))[0, 0].tolist() == [[6, 2, 0]]


def test_flow_by_hand() -> None:
    flow = torch.tensor([3.0, 5.0]).view(1, 2, 1, 1).expand(1, 2, 4, 6)
    known = torch.ones(1, 1, 4, 6, dtype=torch.bool)
    placement = _place(_axis(4, scale=2.0), _axis(6, scale=0.5, flip=True))
    placed, valid = place_dense(flow, known, placement, (8, 3))
    assert valid.all()
    assert (placed[0, 0] == -1.5).all()
    assert (placed[0, 1] == 10).all()


def test_an_unknown_vector_spoils_only_what_it_has_weight_in() -> None:
    flow = torch.ones(1, 2, 1, 4)
    known = torch.tensor([True, False, True, True]).view(1, 1, 1, 4)
    placement = _place(_axis(1), _axis(4, scale=2.0))
    placed, valid = place_dense(flow * known, known, placement, (1, 8))
    # Pixel k of the eight lies at (k − ½)/2: 1 is between 0 and 1, …, 4 between 1 and 2.
    assert valid[0, 0, 0].tolist() == [True, False, False, False, False, True, True, True]
    assert placed[0, 0, 0].tolist() == [2, 0, 0, 0, 0, 2, 2, 2]


def test_what_is_not_resized_is_copied_bit_for_bit() -> None:
    source = torch.rand(1, 3, 19, 23)
    out = resample(source, _place(_axis(19, offset=4), _axis(23, offset=6)), (12, 15))
    assert torch.equal(out, source[:, :, 4:16, 6:21])


def _bounds(values: Tensor) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def test_draws_keep_their_bounds_and_reach_them() -> None:
    g = RAFT_CHAIRS.geometry
    p = _draw(g, 4000, 800, 1000)
    drawn = p.is_resized
    assert abs(drawn.double().mean() - 0.8) < 0.03
    assert abs(p.x.flip.double().mean() - 0.5) < 0.03
    assert abs(p.y.flip.double().mean() - 0.1) < 0.02
    assert (p.x.scale[~drawn] == 1).all()
    assert (p.y.scale[~drawn] == 1).all()
    for scale in (p.x.scale[drawn], p.y.scale[drawn]):
        low, high = _bounds(scale.log2())
        assert -0.3 <= low < -0.2
        assert 1.1 < high <= 1.2
    stretch = (p.x.scale[drawn] / p.y.scale[drawn]).log2()
    assert abs((stretch != 0).double().mean() - 0.8) < 0.03
    low, high = _bounds(stretch)
    assert -0.4 <= low < -0.35
    assert 0.35 < high <= 0.4
    # The authors' upper bound is exclusive.
    room = p.x.resized - 496
    assert (p.x.offset >= 0).all()
    assert (p.x.offset < room).all()
    assert (p.x.offset == 0).any()
    assert (p.x.offset == room - 1).any()


@pytest.mark.parametrize(("h", "w"), [(384, 512), (200, 900), (30, 20), (368, 496)])
def test_no_crop_is_larger_than_its_image(h: int, w: int) -> None:
    p = _draw(RAFT_CHAIRS.geometry, 300, h, w)
    assert (p.y.resized >= 368).all()
    assert (p.x.resized >= 496).all()
    assert (p.y.offset + 368 <= p.y.resized).all()
    assert (p.x.offset + 496 <= p.x.resized).all()
    if h < 368 or w < 496:
        assert p.is_resized.all()
        assert (p.y.resized >= 376).all()
        assert (p.x.resized >= 504).all()


def test_margins_favour_the_borders() -> None:
    p = _draw(Geometry((10, 10), margin_y=(0, 20), margin_x=(50, 50)), 4000, 30, 60)
    assert _bounds(p.y.offset) == (0, 20)
    assert _bounds(p.x.offset) == (0, 50)
    # Rows: 0 … 39 clamped to 20, so 20 of 40 are the last. Columns: −50 … 99 clamped to 0 … 50.
    assert abs((p.y.offset == 20).double().mean() - 20 / 40) < 0.03
    assert abs((p.x.offset == 0).double().mean() - 51 / 150) < 0.03
    assert abs((p.x.offset == 50).double().mean() - 50 / 150) < 0.03


def test_an_inclusive_offset_is_a_margin_of_one() -> None:
    p = _draw(Geometry((10, 10), margin_y=(0, 1), margin_x=(0, 1)), 2000, 12, 11)
    assert p.y.offset.unique().tolist() == [0, 1, 2]
    assert p.x.offset.unique().tolist() == [0, 1]
    assert abs((p.x.offset == 1).double().mean() - 0.5) < 0.04


def test_without_a_scale_nothing_is_resized() -> None:
    p = _draw(Geometry((10, 10)), 50, 12, 13)
    assert not p.is_resized.any()
    assert (p.x.resized == 13).all()


def test_one_scale_for_both_axes_without_stretch() -> None:
    g = replace(RAFT_CHAIRS.geometry, stretch=0.0)
    p = _draw(g, 100, 900, 1000)
    assert torch.equal(p.x.scale, p.y.scale)

"""Sign, order and units, pinned where height, width, u and v all differ."""

from __future__ import annotations

import pytest
import torch

from lcv.cost_volume import coords_from_flow, pixel_grid, window_offsets
from lcv.cost_volume.conventions import (
    Settings,
    check_levels,
    check_lookup,
    check_pyramid,
    check_radius,
    check_window,
    exact_dtype,
    float32_products,
)
from lcv.errors import ArgumentError


def test_grid_holds_x_then_y() -> None:
    expected = [[[0, 1, 2], [0, 1, 2]], [[0, 0, 0], [1, 1, 1]]]
    assert pixel_grid(2, 3).tolist() == expected


def test_grid_has_the_dtype_asked_for() -> None:
    assert pixel_grid(2, 3).dtype == torch.float32
    assert pixel_grid(2, 3, dtype=torch.float64).dtype == torch.float64


def test_flow_moves_right_and_down() -> None:
    flow = torch.tensor([10.0, 100.0]).view(1, 2, 1, 1).expand(1, 2, 2, 3)
    assert coords_from_flow(flow)[0, :, 1, 2].tolist() == [12.0, 101.0]


def test_x_outer_has_x_as_the_slow_index() -> None:
    expected = [(dx, dy) for dx in (-2, -1, 0, 1, 2) for dy in (-1, 0, 1)]
    assert window_offsets(5, 3).tolist() == [list(map(float, o)) for o in expected]


def test_y_outer_has_y_as_the_slow_index() -> None:
    expected = [(dx, dy) for dy in (-1, 0, 1) for dx in (-2, -1, 0, 1, 2)]
    assert window_offsets(5, 3, "y_outer").tolist() == [list(map(float, o)) for o in expected]


@pytest.mark.parametrize("window", [(4, 3), (3, 0), (-1, 3)])
def test_a_window_without_a_centre_is_refused(window: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="wanted an odd number of at least 1"):
        window_offsets(*window)


def test_an_unknown_order_lists_the_known() -> None:
    with pytest.raises(ArgumentError, match="'xy', wanted one of x_outer, y_outer"):
        window_offsets(3, 3, "xy")


def test_one_radius_or_two() -> None:
    assert check_radius("f", 4) == (4, 4)
    assert check_radius("f", (4, 3)) == (4, 3)
    for wrong in (-1, (1, 2, 3), (1, -2), (1.5, 2)):
        with pytest.raises(ArgumentError, match="f: radius is"):
            check_radius("f", wrong)  # type: ignore[arg-type]


def test_a_map_too_small_is_told_the_least_size() -> None:
    check_pyramid("f", 4, 8, 8)
    with pytest.raises(ArgumentError, match=r"f: 4 levels .* at least 8×8, but f2 is h=9, w=7"):
        check_pyramid("f", 4, 9, 7)


def test_a_window_of_one_pixel_has_a_centre_and_one_of_three_sizes_is_none() -> None:
    assert window_offsets(1, 1).tolist() == [[0, 0]]
    assert check_window("f", (3, 1)) == (3, 1)
    for wrong in ((3,), (3, 3, 3)):
        with pytest.raises(ArgumentError, match=r"f: window is \(3.*\), wanted \(u, v\), both odd"):
            check_window("f", wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="f: window has v=3.0, wanted an odd number"):
        check_window("f", (3, 3.0))  # type: ignore[arg-type]


def test_a_pyramid_has_a_level_at_least() -> None:
    assert check_levels("f", 1) == 1
    for wrong in (0, 2.0):
        with pytest.raises(
            ArgumentError, match=f"f: levels is {wrong}, wanted an integer of at le"
        ):
            check_levels("f", wrong)  # type: ignore[arg-type]
    check_pyramid("f", 1, 1, 1)
    with pytest.raises(ArgumentError, match="f: 2 levels halve the map 1 times, .* at least 2×2"):
        check_pyramid("f", 2, 1, 2)
    assert check_radius("f", 0) == (0, 0)


def test_a_state_is_looked_up_with_what_it_was_built_with() -> None:
    built = Settings(4, 3, 3, 0.5, "torch")
    check_lookup("f", (1, 2, 5, 6), (1, 5, 6), built, built)
    with pytest.raises(ArgumentError, match=r"f: coords \(1, 2, 6, 5\) .*wanted \(1, 2, 5, 6\)"):
        check_lookup("f", (1, 2, 6, 5), (1, 5, 6), built, built)
    with pytest.raises(ArgumentError, match="f: the state was built with .*scale=0.5.* but this"):
        check_lookup("f", (1, 2, 5, 6), (1, 5, 6), built, built._replace(scale=1.0))


def test_positions_are_exact_in_float32_or_better() -> None:
    half, single, double = (
        torch.zeros(1, dtype=t) for t in (torch.half, torch.float, torch.double)
    )
    assert exact_dtype(half, single) == exact_dtype(half) == torch.float32
    assert exact_dtype(half, double) == torch.float64


def test_the_precision_of_products_is_as_before_afterwards() -> None:
    had = torch.backends.cuda.matmul.fp32_precision
    for precision in ("ieee", "tf32"):
        with float32_products(precision):
            assert torch.backends.cuda.matmul.fp32_precision == precision
        assert torch.backends.cuda.matmul.fp32_precision == had

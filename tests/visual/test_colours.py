"""The colour wheel is Middlebury's, pixel for pixel."""

from __future__ import annotations

import flow_vis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.colours import (
    colour_wheel,
    flow_scale,
    flow_to_colour,
    picture_scale,
    wheel_legend,
)


def test_the_wheel():
    assert np.array_equal(colour_wheel(), flow_vis.make_colorwheel())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(1e-4, 1e4), double=st.booleans())
def test_equal_to_flow_vis(seed, size, double):
    flow = np.random.default_rng(seed).standard_normal((17, 23, 2)) * size
    flow = flow if double else flow.astype(np.float32)
    assert np.array_equal(flow_to_colour(flow), flow_vis.flow_to_color(flow))


@pytest.mark.parametrize("scale", [0.5, 3.0, 1000.0])
def test_equal_to_flow_vis_at_a_given_scale(scale):
    flow = np.random.default_rng(1).standard_normal((30, 40, 2)) * 2
    u, v = flow[..., 0] / scale, flow[..., 1] / scale
    assert np.array_equal(flow_to_colour(flow, scale), flow_vis.flow_uv_to_colors(u, v))


def test_colours_by_hand():
    flow = np.array([[[1, 0], [0, 1], [-1, 0], [0, -1], [0, 0], [2, 0]]], float)
    right, down, left, up, still, far = flow_to_colour(flow, max_flow=1)[0].tolist()
    assert right == [255, 0, 0]
    assert (down[0], down[2]) == (255, 0)
    assert (left[0], left[2]) == (0, 255)
    assert (up[1], up[2]) == (0, 255)
    assert still == [255, 255, 255]
    assert far == [191, 0, 0]


def test_what_is_unknown_is_black_and_sets_no_scale():
    flow = np.ones((2, 3, 2), np.float32)
    flow[0, 0, 1] = np.nan
    flow[0, 1, 0] = np.inf
    flow[0, 2] = 1.6666e9
    flow[1, 0] = 77
    valid = np.ones((2, 3), bool)
    valid[1, 0] = False
    picture = flow_to_colour(flow, valid=valid)
    assert not picture[0].any()
    assert not picture[1, 0].any()
    assert picture[1, 1:].any(axis=1).all()
    assert flow_scale(flow, valid) == pytest.approx(2**0.5, abs=2e-5)


def test_zero_flow_is_white_and_has_a_scale():
    flow = np.zeros((3, 4, 2), np.float32)
    assert (flow_to_colour(flow) == 255).all()
    assert flow_scale(flow) == pytest.approx(1e-5)
    assert flow_scale(np.full((1, 2, 2), np.nan)) == pytest.approx(1e-5)


def test_whole_numbers_are_a_flow_too():
    flow = np.arange(24).reshape(3, 4, 2)
    assert np.array_equal(flow_to_colour(flow), flow_to_colour(flow.astype(float)))


def test_the_legend_shows_each_direction_where_it_points():
    legend = wheel_legend(65)
    assert legend.shape == (65, 65, 3)
    assert legend.dtype == np.uint8
    assert (legend[0, 0] == 255).all()
    assert (legend[32, 32] == 255).all()
    assert legend[32, 64].tolist() == [255, 0, 0]
    down = flow_to_colour(np.array([[[0.0, 1.0]]]), 1)[0, 0]
    assert np.array_equal(legend[64, 32], down)


def test_refusals():
    with pytest.raises(ShapeError, match=r"flow_to_colour: flow has shape \(2, 5, 5\), wanted"):
        flow_to_colour(np.zeros((2, 5, 5)))
    with pytest.raises(ShapeError, match=r"valid has shape \(4, 5\), wanted \(5, 4\) as flow"):
        flow_to_colour(np.zeros((5, 4, 2)), valid=np.ones((4, 5), bool))
    for scale in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="wanted a positive number of pixels"):
            flow_to_colour(np.zeros((5, 4, 2)), max_flow=scale)
    with pytest.raises(ArgumentError, match="size is 2, wanted at least 3 pixels"):
        wheel_legend(2)


def test_the_scale_of_a_picture_ignores_wild_pixels_and_does_not_blow_up_noise():
    flow = np.zeros((50, 40, 2), np.float32)
    flow[..., 0] = 3
    flow[0, 0] = (500, 0)
    assert picture_scale(flow) == pytest.approx(3)
    assert picture_scale(0.01 * flow / 3) == 1
    valid = np.zeros((50, 40), bool)
    assert picture_scale(flow, valid) == 1
    valid[0, 0] = True
    assert picture_scale(flow, valid) == 500

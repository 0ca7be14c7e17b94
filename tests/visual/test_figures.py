"""Figures put the right picture in the right place, on one scale."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.errors import ArgumentError, ShapeError
from lcv.visual import figures as module
from lcv.visual.colours import flow_to_colour
from lcv.visual.error_maps import kitti_error_map, sintel_error_map
from lcv.visual.figures import (
    ErrorStyle,
    Known,
    common_scale,
    difference,
    difference_figure,
    difference_picture,
    difference_scale,
    error_picture,
    fit,
    flow_picture,
    mean_length,
    methods_figure,
)

H, W = 90, 240


def known(seed, size=1.0):
    rng = np.random.default_rng(seed)
    return Known((size * rng.standard_normal((H, W, 2))).astype(np.float32), np.ones((H, W), bool))


def frame(level):
    return np.full((H, W, 3), level, np.uint8)


def test_one_scale_for_all_that_is_compared():
    a, b = known(0), known(1, 7.0)
    usual = max(np.percentile(np.hypot(*np.moveaxis(x.flow, 2, 0)), 99) for x in (a, b))
    assert usual <= common_scale(a, b) == common_scale(b) < 1.02 * usual


def test_unknown_motion_sets_no_scale_and_none_is_no_motion():
    a = known(0)
    a.flow[0, 0] = 1e6
    a.valid[0, 0] = False
    assert common_scale(a) < 10
    assert common_scale(Known(np.zeros((3, 3, 2)), np.ones((3, 3), bool))) == 1


def test_pictures_hold_the_pixels_of_their_flow():
    a, truth = known(0), known(1)
    assert np.array_equal(flow_picture(a, 3.0)[:H, :W], flow_to_colour(a.flow, 3.0))
    error = error_picture(a, truth, ErrorStyle("sintel", 2.0), "EPE 1 px")
    assert np.array_equal(error[:H, :W], sintel_error_map(a.flow, truth.flow, limit=2.0))
    assert (error[H : H + 14, :W] < 128).any()
    kitti = error_picture(a, truth, ErrorStyle("kitti"))
    assert np.array_equal(kitti[:H, :W], kitti_error_map(a.flow, truth.flow))


def test_the_difference_is_signed_and_known_where_both_are():
    a, b = known(0), known(1)
    a.valid[3, 4] = b.valid[5, 6] = False
    apart = difference(a, b)
    assert not apart.valid[3, 4]
    assert not apart.valid[5, 6]
    assert apart.valid.sum() == H * W - 2
    assert np.array_equal(apart.flow[0, 0], a.flow[0, 0] - b.flow[0, 0])
    page = difference_picture(a, b, 2.0)
    assert np.array_equal(page[:H, :W], flow_to_colour(apart.flow, 2.0, apart.valid))
    length = np.hypot(*np.moveaxis(apart.flow, 2, 0))[apart.valid]
    assert mean_length(apart) == pytest.approx(float(length.mean()), rel=1e-6)


def test_a_few_large_differences_do_not_hide_the_rest():
    a, b = known(0, 0.1), Known(np.zeros((H, W, 2), np.float32), np.ones((H, W), bool))
    before = difference_scale(difference(a, b))
    a.flow[:1, : W // 2] += 1000
    assert difference_scale(difference(a, b)) < 1.5 * before


def test_no_difference_can_be_drawn_too():
    a = known(0)
    assert difference_scale(difference(a, a)) == 0.01
    assert (difference_picture(a, a)[:H, :W] == 255).all()
    nothing = Known(a.flow, np.zeros((H, W), bool))
    assert mean_length(difference(a, nothing)) == 0
    assert not difference_picture(a, nothing)[:H, :W].any()


def test_the_figure_of_methods():
    truth, flows = known(0), {"one": known(1), "two": known(2)}
    numbers = {"one": "EPE 1 px", "two": "EPE 2 px"}
    style = ErrorStyle("kitti")
    page = methods_figure(
        [frame(1), frame(2)], flows, truth, style=style, numbers=numbers, scale=4.0
    )
    step = W + 6
    assert page.shape[1] == 4 * step - 6
    assert (page[:H, :W] == 1).all()
    assert np.array_equal(page[:H, step : step + W], flow_to_colour(truth.flow, 4.0))
    two = slice(3 * step, 3 * step + W)
    assert np.array_equal(page[:H, two], flow_to_colour(flows["two"].flow, 4.0))
    below = next(y for y in range(H, len(page)) if (page[y, :W] == 2).all())
    assert np.array_equal(
        page[below : below + H, two], kitti_error_map(flows["two"].flow, truth.flow)
    )
    assert (page[below + H :, two] < 128).any()  # its number


def test_the_figure_of_a_difference():
    flows = {"one": known(1), "two": known(2)}
    page = difference_figure(frame(1), flows, scale=4.0, apart_scale=2.0)
    step = W + 6
    assert page.shape[1] == 3 * step - 6
    assert np.array_equal(page[:H, step : step + W], flow_to_colour(flows["one"].flow, 4.0))
    apart = difference(*flows.values())
    wanted = flow_to_colour(apart.flow, 2.0)
    rows = [y for y in range(H, len(page) - H + 1) if np.array_equal(page[y, step:][:W], wanted[0])]
    assert np.array_equal(page[rows[0] : rows[0] + H, step : step + W], wanted)


@pytest.mark.parametrize(("width", "found"), [(None, W), (120, 120), (480, 480)])
def test_the_width_of_one_picture(width, found):
    page = difference_figure(frame(1), {"a": known(1), "b": known(2)}, width=width)
    assert page.shape[1] == 3 * found + 12


def test_small_frames_grow_and_large_ones_shrink():
    def wide(width):
        shape = (20, width)
        flow = Known(np.zeros((*shape, 2)), np.ones(shape, bool))
        return difference_figure(np.zeros((*shape, 3), np.uint8), {"a": flow, "b": flow}).shape[1]

    assert wide(50) == 3 * 250 + 12
    assert wide(2000) == 3 * 480 + 12


def test_refusals():
    a, other = known(0), Known(np.zeros((4, 5, 2)), np.ones((4, 5), bool))
    style = ErrorStyle()
    with pytest.raises(
        ArgumentError, match="no style of error maps 'middlebury'; there are sintel"
    ):
        ErrorStyle("middlebury")
    with pytest.raises(ShapeError, match=r"the flows are 240×90 and 5×4 pixels"):
        difference(a, other)
    with pytest.raises(ShapeError, match="wanted the same size"):
        error_picture(a, other, style)
    with pytest.raises(ArgumentError, match="needs two flows, got 1: a"):
        difference_figure(frame(0), {"a": a})
    with pytest.raises(ArgumentError, match="wanted 2 frames for this figure, got 1"):
        methods_figure([frame(0)], {"a": a}, a, style=style, numbers={})
    with pytest.raises(ShapeError, match=r"frame 2 is 7×3, the flow 240×90"):
        methods_figure(
            [frame(0), np.zeros((3, 7, 3), np.uint8)], {"a": a}, a, style=style, numbers={}
        )


@pytest.fixture
def said(monkeypatch):
    """What is asked of the legends, of their cell, and of the page, in that order."""
    found = []

    def listen(name, function):
        def heard(*given, **more):
            found.append((name, given, more))
            return function(*given, **more)

        monkeypatch.setattr(module, name, heard)

    for name in ("wheel_key", "grey_key", "kitti_key", "key_cell", "side_by_side", "text_strip"):
        listen(name, getattr(module, name))
    return found


def words_of(found, name):
    return [(*given, more) for each, given, more in found if each == name]


def test_what_is_written_in_the_figure_of_methods(said):
    truth, flows = known(0), {"one": known(1), "two": known(2)}
    style = ErrorStyle("sintel", 3.0)
    frames = [frame(1), frame(2)]
    page = methods_figure(frames, flows, truth, style=style, numbers={"one": "EPE 1 px"})
    assert words_of(said, "wheel_key") == [(common_scale(truth, *flows.values()), 72, {})]
    assert words_of(said, "grey_key") == [(3.0, 170, {})]
    ((height, wide, *_),) = words_of(said, "key_cell")
    assert (height, wide) == (H, W)
    ((pictures, labels, columns, more),) = words_of(said, "side_by_side")
    assert labels == ["frame 1", "ground truth", "one", "two", "frame 2", "", "EPE 1 px", ""]
    assert (len(pictures), columns, more) == (8, 4, {"gap": 6})
    assert page.shape[1] == 4 * W + 18
    said.clear()
    methods_figure(frames, flows, truth, style=ErrorStyle("kitti"), numbers={}, width=800)
    assert words_of(said, "wheel_key")[0][1] == 2 * 300 // 5
    assert words_of(said, "kitti_key") == [(4 * 300 // 5, {})]


def test_sparse_truth_is_spread_in_the_figure_of_methods():
    truth = known(0)
    truth.valid[:] = False
    truth.valid[40, 100] = True
    page = methods_figure(
        [frame(1), frame(2)], {"a": known(1)}, truth, style=ErrorStyle(), numbers={}, scale=2.0
    )
    colour = flow_to_colour(truth.flow, 2.0)[40, 100]
    shown = page[:H, W + 6 : 2 * W + 6]
    assert (shown[39:42, 99:102] == colour).all()
    assert np.count_nonzero(shown.any(2)) == 9


def test_what_is_written_in_the_figure_of_a_difference(said):
    a, b = known(1), known(2)
    difference_figure(frame(1), {"one": a, "two": b}, numbers={"two": "EPE 2 px"})
    apart = difference(a, b)
    own = difference_scale(apart)
    assert words_of(said, "wheel_key") == [(common_scale(a, b), 72, {}), (own, 72, {})]
    assert words_of(said, "text_strip") == [("flow", 72, 12, {}), ("difference", 72, 12, {})]
    ((pictures, labels, columns, more),) = words_of(said, "side_by_side")
    mean = f"its length, mean {mean_length(apart):.3g} px, white from {own:.3g} px"
    assert labels == ["frame 1", "one", "two\nEPE 2 px", "", "one - two", mean]
    assert (columns, more) == (3, {"gap": 6})
    wanted = [flow_to_colour(x.flow, common_scale(a, b)) for x in (a, b)]
    wanted += [flow_to_colour(apart.flow, own)]
    wanted += [sintel_error_map(apart.flow, np.zeros((H, W, 2)), limit=own)]
    for picture, each in zip([*pictures[1:3], *pictures[4:]], wanted, strict=True):
        assert np.array_equal(picture, each)


def test_the_legends_of_single_pictures(said):
    a, b = known(1), known(2)
    flow_picture(a, 3.0)
    difference_picture(a, b)
    own = difference_scale(difference(a, b))
    assert words_of(said, "wheel_key") == [(3.0, 72, {}), (own, 72, {})]
    ((_, labels, _),) = words_of(said, "side_by_side")
    assert labels[0] == "difference"
    assert labels[1].endswith(f"white from {own:.3g} px")
    error_picture(a, b, ErrorStyle())
    assert words_of(said, "grey_key") == [(10.0, 170, {})]
    assert len(words_of(said, "side_by_side")) == 1  # no number, no words


@pytest.mark.parametrize(
    ("height", "width", "wheel", "in_cell", "bar"),
    [
        (90, 240, 72, 72, 170),
        (240, 250, 80, 96, 240),
        (400, 330, 110, 150, 320),
        (370, 380, 123, 148, 320),
        (490, 490, 160, 150, 320),
    ],
)
def test_the_sizes_of_legends(said, monkeypatch, height, width, wheel, in_cell, bar):
    for name in ("flow_to_colour", "kitti_error_map", "sintel_error_map"):
        monkeypatch.setattr(module, name, lambda *_: np.zeros((height, width, 3), np.uint8))
    flow = Known(np.zeros((height, width, 2)), np.ones((height, width), bool))
    flow_picture(flow, 2.0)
    error_picture(flow, flow, ErrorStyle("kitti"))
    assert words_of(said, "wheel_key") == [(2.0, wheel, {})]
    assert words_of(said, "kitti_key") == [(bar, {})]
    said.clear()
    picture = np.zeros((height, width, 3), np.uint8)
    difference_figure(picture, {"a": flow, "b": flow}, scale=2.0, width=width)
    assert [each[1] for each in words_of(said, "wheel_key")] == [in_cell, in_cell]


@pytest.mark.parametrize(
    ("found", "most", "wanted"),
    [(50, 480, 250), (239, 480, 478), (240, 480, 240), (480, 480, 480), (481, 480, 480)],
)
def test_a_picture_is_between_half_and_all_of_the_most(found, most, wanted):
    assert fit(np.zeros((10, found, 3), np.uint8)).shape[1] == wanted
    assert fit(np.zeros((10, found, 3), np.uint8), most=most).shape[1] == wanted
    assert fit(np.zeros((1, 9999, 3), np.uint8), 3).shape == (1, 3, 3)
    pixels = np.array([[[9] * 3, [200] * 3]], np.uint8)
    assert fit(pixels, 6)[..., 0].tolist() == [[9, 9, 9, 200, 200, 200]] * 3


def test_more_refusals():
    a, other = known(0), Known(np.zeros((4, 5, 2)), np.ones((4, 5), bool))
    small = np.zeros((4, 5, 3), np.uint8)
    with pytest.raises(ShapeError, match=r"the flows are 5×4 and 240×90 pixels"):
        methods_figure([frame(0)] * 2, {"b": other}, a, style=ErrorStyle(), numbers={})
    with pytest.raises(ShapeError, match=r"frame 1 is 5×4, the flow 240×90; wanted the same size"):
        difference_figure(small, {"a": a, "b": a})

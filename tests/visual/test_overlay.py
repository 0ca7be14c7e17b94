"""Arrows begin where their pixel is and end where the flow takes it."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.overlay import arrow_stretch, draw_arrows


def drawn(flow, spacing, **options):
    """Where the picture was changed."""
    height, width = flow.shape[:2]
    grey = np.full((height, width, 3), 128, np.uint8)
    return np.abs(draw_arrows(grey, flow, spacing, **options).astype(int) - 128).max(2) > 40


@pytest.mark.parametrize("motion", [(20, 0), (0, -20), (-14, 14), (9, 3)])
def test_one_arrow_covers_the_way_and_no_more(motion):
    """One arrow, at the middle of a frame no larger than a step."""
    flow = np.broadcast_to(np.array(motion, np.float32), (61, 61, 2))
    rows, places = np.nonzero(drawn(flow, 61))
    for found, step in ((places, motion[0]), (rows, motion[1])):
        low, high = sorted((30, 30 + step))
        # The head is wider than the shaft, and both have an edge.
        assert low - 10 <= found.min() <= low + 2
        assert high - 2 <= found.max() <= high + 10
    assert drawn(flow, 61)[30, 30]


def test_one_arrow_a_cell_and_dots_where_nothing_moves():
    dots = drawn(np.zeros((32, 48, 2)), 16)
    assert dots[8::16, 8::16].all()
    assert dots.sum() < 6 * 16
    assert not dots[::16].any()


def test_stretch_makes_them_longer():
    flow = np.zeros((41, 81, 2))
    flow[..., 0] = 5
    once, thrice = (np.nonzero(drawn(flow, 81, stretch=s))[1].max() for s in (1.0, 3.0))
    assert thrice - once == pytest.approx(10, abs=1)


def test_there_is_no_arrow_where_nothing_is_known():
    flow = np.full((16, 64, 2), 3.0)
    flow[8, 8], flow[8, 24, 1], flow[8, 40] = np.nan, np.inf, 1.7e9
    valid = np.ones((16, 64), bool)
    valid[8, 56] = False
    assert not drawn(flow, 16, valid=valid).any()


def test_bands_do_not_show():
    """Frames are drawn in bands of rows; an arrow across two of them is the same as one within."""
    tall, short = np.zeros((512, 40, 2)), np.zeros((400, 40, 2))
    tall[251, 20] = short[139, 20] = (0, 30)
    valid_tall, valid_short = np.zeros(tall.shape[:2], bool), np.zeros(short.shape[:2], bool)
    valid_tall[251, 20] = valid_short[139, 20] = True
    grey = np.full((512, 40, 3), 128, np.uint8)
    one = draw_arrows(grey, tall, 1, valid_tall)
    other = draw_arrows(grey[:400], short, 1, valid_short)
    assert np.array_equal(one[240:300], other[128:188])
    assert (one[240:300] != 128).any()


def test_the_frame_stays_as_it_was():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    before = image.copy()
    flow = np.full((20, 30, 2), 1e8)
    assert draw_arrows(image, flow).shape == image.shape
    assert np.array_equal(image, before)
    grey = draw_arrows(image[..., 0], np.full((20, 30, 2), np.nan))
    assert np.array_equal(grey, np.repeat(image[..., :1], 3, axis=2))


def test_refusals():
    image, flow = np.zeros((4, 6, 3), np.uint8), np.zeros((4, 6, 2))
    with pytest.raises(ShapeError, match=r"flow has shape \(6, 4, 2\), wanted \(4, 6, 2\)"):
        draw_arrows(image, flow.transpose(1, 0, 2))
    with pytest.raises(ShapeError, match="wanted \\(H, W, 3\\) uint8"):
        draw_arrows(image.astype(float), flow)
    with pytest.raises(ShapeError, match=r"valid has shape \(6, 4\)"):
        draw_arrows(image, flow, valid=np.ones((6, 4), bool))
    with pytest.raises(ArgumentError, match="spacing is 0"):
        draw_arrows(image, flow, 0)
    with pytest.raises(ArgumentError, match="stretch is nan"):
        draw_arrows(image, flow, stretch=float("nan"))


@pytest.mark.parametrize(
    ("length", "times"), [(0.01, 1), (0.5, 20), (1, 10), (3, 5), (7, 2), (12, 1), (100, 1)]
)
def test_short_arrows_are_made_longer_up_to_the_spacing(length, times):
    flow = np.full((40, 40, 2), [0, -length], np.float32)
    flow[0, 0] = np.nan
    assert arrow_stretch(flow, 16) == times
    assert arrow_stretch(flow, 16, np.zeros((40, 40), bool)) == 1

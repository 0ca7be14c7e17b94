"""Error maps: the colours of KITTI's table, the greys of Sintel's, and what is unknown."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.errors import ArgumentError, ShapeError
from lcv.evaluate.metrics import flow_sums, metrics_of
from lcv.visual.error_maps import (
    KITTI_BOUNDS,
    KITTI_COLOURS,
    end_point_error,
    kitti_error_map,
    sintel_error_map,
)


def off_by(errors, truth=(30.0, 40.0)):
    """(flow, truth) of one row, whose errors are those given."""
    truth = np.broadcast_to(np.array(truth), (1, len(errors), 2))
    flow = truth + np.array(errors)[None, :, None] * np.array([0.6, -0.8])
    return flow, truth


def test_the_table_of_kitti():
    """|truth| = 50 px: 3 px is the limit. From 60 px on, 5 % is."""
    bounds = np.array(KITTI_BOUNDS)
    inside = np.append((bounds[1:] + bounds[:-1]) / 2, 40)
    flow, truth = off_by(3 * inside)
    assert kitti_error_map(flow, truth)[0].tolist() == [list(c) for c in KITTI_COLOURS]
    flow, truth = off_by(10 * inside, (160.0, 120.0))
    assert kitti_error_map(flow, truth)[0].tolist() == [list(c) for c in KITTI_COLOURS]
    # The ten colours of ColorBrewer's RdYlBu, blue first, and bounds that double up to 16.
    web = "313695 4575b4 74add1 abd9e9 e0f3f8 fee090 fdae61 f46d43 d73027 a50026"
    assert [bytes(c).hex() for c in KITTI_COLOURS] == web.split()
    assert list(KITTI_BOUNDS) == [0, *(2.0**k for k in range(-4, 5))]


def test_red_is_an_outlier_of_fl():
    """The share of red and yellow is the metric, which is written elsewhere and in torch."""
    rng = np.random.default_rng(0)
    truth = 60 * rng.standard_normal((40, 50, 2))
    flow = truth + 4 * rng.standard_normal(truth.shape)
    picture = kitti_error_map(flow, truth)
    share = 100 * float((picture[..., 0] > picture[..., 2]).mean())
    tensors = (torch.tensor(x).movedim(2, 0)[None] for x in (flow, truth))
    fl = metrics_of(flow_sums(*tensors, torch.ones(1, 1, 40, 50, dtype=torch.bool)))["fl"]
    assert 10 < fl < 60
    assert share == pytest.approx(fl)


def test_sparse_truth_is_drawn_three_by_three_and_known_pixels_keep_their_colour():
    flow, truth = np.zeros((7, 8, 2)), np.zeros((7, 8, 2))
    flow[2, 3] = 100  # wrong
    valid = np.zeros((7, 8), bool)
    valid[2, 3] = valid[3, 4] = valid[6, 0] = True
    picture = kitti_error_map(flow, truth, valid)
    red, blue = list(KITTI_COLOURS[-1]), list(KITTI_COLOURS[0])
    assert picture[2, 3].tolist() == red
    assert picture[1, 2].tolist() == red
    assert picture[3, 4].tolist() == blue
    assert picture[2, 4].tolist() == blue  # beside both: the later one, as the benchmark draws
    assert picture[5, 1].tolist() == blue
    covered = picture.any(2)
    wanted = np.zeros_like(covered)
    wanted[1:4, 2:5] = wanted[2:5, 3:6] = wanted[5:7, :2] = True
    assert np.array_equal(covered, wanted)


def test_what_frame_2_does_not_see_is_half_as_bright():
    flow, truth = off_by([0.0, 0.0])
    picture = kitti_error_map(flow, truth, visible=np.array([[True, False]]))
    assert picture[0, 0].tolist() == list(KITTI_COLOURS[0])
    assert picture[0, 1].tolist() == [c // 2 for c in KITTI_COLOURS[0]]


def test_greys_of_sintel():
    flow, truth = off_by([0.0, 2.5, 5.0, 10.0, 1000.0])
    assert sintel_error_map(flow, truth)[0, :, 1].tolist() == [0, 64, 128, 255, 255]
    assert sintel_error_map(flow, truth, limit=2.5)[0, :, 0].tolist() == [0, 255, 255, 255, 255]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.6666e9])
def test_unknown_is_no_error_in_either(bad):
    flow, truth = (np.array(x) for x in off_by([0.0, 0.0, 9.0]))
    flow[0, 0, 1] = truth[0, 0, 1] = bad
    truth[0, 1, 0] = bad
    error, known = end_point_error(flow, truth, np.array([[True, True, True]]))
    assert known.tolist() == [[False, False, True]]
    assert error[0].tolist() == pytest.approx([0, 0, 9])
    assert sintel_error_map(flow, truth)[0, :2].tolist() == [[40, 62, 104]] * 2
    assert not kitti_error_map(flow, truth)[0, 0].any()
    assert kitti_error_map(flow, truth, np.zeros((1, 3), bool)).max() == 0


def test_refusals():
    zeros = np.zeros((4, 5, 2))
    with pytest.raises(ShapeError, match=r"flow is 5×4, truth 6×4; wanted the same size"):
        kitti_error_map(zeros, np.zeros((4, 6, 2)))
    with pytest.raises(ShapeError, match=r"truth has shape \(4, 5\), wanted \(H, W, 2\)"):
        sintel_error_map(zeros, zeros[..., 0])
    with pytest.raises(ShapeError, match=r"valid has shape \(5, 4\), wanted \(4, 5\) as flow"):
        sintel_error_map(zeros, zeros, np.ones((5, 4), bool))
    with pytest.raises(ShapeError, match="visible has shape"):
        kitti_error_map(zeros, zeros, visible=np.ones((5, 4), bool))
    for limit in (0, -3, float("nan")):
        with pytest.raises(ArgumentError, match="wanted a positive number of pixels"):
            sintel_error_map(zeros, zeros, limit=limit)

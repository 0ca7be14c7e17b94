"""Pictures of W show its numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.errors import ArgumentError
from lcv.inner_product import make_inner_product
from lcv.visual.inspection import inspect_product
from lcv.visual.weight_pictures import (
    BLUE,
    RED,
    angles_chart,
    channel_plane_figure,
    diverging,
    eigen_feature_figure,
    matrix_picture,
    spectrum_chart,
)


def level(channels=6, name=""):
    product = make_inner_product("elliptical", channels)
    with torch.no_grad():
        product.t.copy_(torch.linspace(-1, 1, channels))
        product.S_upper.normal_(std=0.3)
    return inspect_product(product, name)


def test_colours_of_both_signs():
    values = np.array([[-9.0, -1.0, 0.0, 1.0, 9.0]])
    picture = diverging(values, 1.0)[0]
    assert picture[0].tolist() == picture[1].tolist() == BLUE.tolist()
    assert picture[2].tolist() == [255, 255, 255]
    assert picture[3].tolist() == picture[4].tolist() == RED.tolist()


def test_the_matrix_is_red_where_W_exceeds_the_identity():
    product = make_inner_product("diagonal", 3)
    with torch.no_grad():
        product.t.copy_(torch.tensor([1.0, 0.0, -1.0]))  # λ = 3, 1, 1/3
    picture = matrix_picture(inspect_product(product))
    side = 384 // 3
    cells = picture[side // 2 : 384 : side, side // 2 : 384 : side]
    assert cells[0, 0].tolist() == RED.tolist()
    assert cells[1, 1].tolist() == [255, 255, 255]
    assert cells[2, 2, 0] < cells[2, 2, 2] < 255  # bluish, a third of the way
    assert (cells[0, 1:] == 255).all()


def test_charts_of_one_and_of_several():
    one, several = {"": level()}, {name: level(4 + int(name), name) for name in "65"}
    for chart in (spectrum_chart, angles_chart):
        assert chart(one).shape == chart(several).shape == (400, 640, 3)
    free = make_inner_product("free", 3)
    with torch.no_grad():
        free.W[0, 1] = 1.0
    assert angles_chart({"": inspect_product(free)}) is None
    assert spectrum_chart({"": inspect_product(free)}).shape == (400, 640, 3)


def test_maps_are_projections_on_the_eigenvectors():
    """A feature that is the heaviest direction in one half, the lightest in the other."""
    one = level()
    features = torch.zeros(6, 8, 12)
    features[:, :, :6] = one.vectors[:, -1].float()[:, None, None]
    features[:, :, 6:] = one.vectors[:, 0].float()[:, None, None]
    frame = np.full((80, 120, 3), 7, np.uint8)
    page = eigen_feature_figure(frame, features, one, count=1)
    width, height = 480, 320
    assert page.shape[1] == 2 * width + 6
    assert (page[:height, :width] == 7).all()
    heavy = page[height // 2, width + 6 :]
    assert heavy[100].tolist() == pytest.approx(RED.tolist(), abs=1)
    assert heavy[400].tolist() == pytest.approx([255, 255, 255], abs=1)
    light = page[-height // 2, width + 6 :]
    assert light[100].tolist() == pytest.approx([255, 255, 255], abs=1)
    assert light[400].tolist() == pytest.approx(RED.tolist(), abs=1)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_no_more_maps_than_channels(count):
    features = torch.randn(6, 5, 9)
    frame = np.zeros((40, 70, 3), np.uint8)
    page = eigen_feature_figure(frame, features, level(), count)
    assert page.dtype == np.uint8
    assert page.shape[1] <= 1500


def test_two_channels_as_in_figure_1():
    one = level()
    figure = channel_plane_figure(one)
    i, j = one.pair
    W = one.W
    value = float((W[i, j] + W[j, i]) / 2)
    labels = [axis.get_xlabel() for axis in figure.axes]
    assert labels[0].endswith("= 0.00")
    assert labels[1].endswith(f"= {value:z.2f}")
    assert labels[2].endswith(f"= {value:z.2f}")
    ends = [torch.tensor(note.xy).double() for note in figure.axes[2].texts if hasattr(note, "xy")]
    lengths = [float(end.norm()) for end in ends]
    assert lengths == pytest.approx([float(W[k, k].sqrt()) for k in (i, j)], rel=1e-6)


def test_refusals():
    with pytest.raises(ArgumentError, match="5 channels of features for a W of 6"):
        eigen_feature_figure(np.zeros((4, 4, 3), np.uint8), torch.zeros(5, 2, 2), level())

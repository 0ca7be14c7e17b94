"""Pictures of W show its numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.errors import ArgumentError
from lcv.inner_product import make_inner_product
from lcv.visual import weight_pictures as module
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


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the chart and of the page."""
    found = []

    def listen(real):
        def heard(*given, **more):
            found.append((given, more))
            return real(*given, **more)

        return heard

    for name in ("curves", "side_by_side", "text_strip"):
        monkeypatch.setattr(module, name, listen(getattr(module, name)))
    return found


def diagonal(*eigenvalues, name=""):
    product = make_inner_product("free", len(eigenvalues))
    with torch.no_grad():
        product.W.copy_(torch.diag(torch.tensor(eigenvalues)))
    return inspect_product(product, name)


@pytest.mark.parametrize(
    ("eigenvalues", "log"), [((1, 4.0), False), ((1, 4.1), True), ((-1, 9.0), False)]
)
def test_what_the_charts_are_asked_for(asked, eigenvalues, log):
    size = (100, 160)
    spectrum_chart({"": diagonal(*eigenvalues), "5": diagonal(1.0, 2.0)}, size)
    ((spectra,), more) = asked[0]
    assert {name: values.tolist() for name, values in spectra.items()} == {
        "W": pytest.approx(eigenvalues),
        "level 5": [1.0, 2.0],
    }
    assert more == {
        "title": "spectrum of W",
        "x": "index, ascending",
        "y": "eigenvalue",
        "log": log,
        "reference": 1.0,
        "size": size,
    }
    asked.clear()
    angles_chart({"": diagonal(*eigenvalues), "5": diagonal(1.0, 2.0)}, size)
    ((turned,), more) = asked[0]
    assert list(turned) == (["level 5"] if eigenvalues[0] < 0 else ["W", "level 5"])
    words = {"title": "rotation angles of P", "x": "index, ascending", "y": "degrees"}
    assert more == {**words, "size": size}


def test_the_matrix_is_said_in_words(asked):
    picture = matrix_picture(diagonal(1.0, 3.5, 1.0, name="4"))
    (((enlarged,), (words,)), _) = asked[0]
    assert enlarged.shape == (384, 384, 3)
    assert words == "W - I, level 4\nfull red +2.5, full blue -2.5"
    assert picture.shape[1] == 384
    asked.clear()
    matrix_picture(diagonal(*[1.0] * 7))
    (((enlarged,), (words,)), _) = asked[0]
    assert enlarged.shape == (54 * 7, 54 * 7, 3)
    assert (enlarged == 255).all()
    assert words == "W - I\nfull red +1, full blue -1"
    asked.clear()
    matrix_picture(diagonal(*[2.0] * 400))
    assert asked[0][0][0][0].shape == (400, 400, 3)


def test_the_names_in_the_figure_of_features(asked):
    one = diagonal(0.25, 0.5, 1.0, 2.0, 8.0, name="3")
    features = torch.randn(5, 6, 8)
    eigen_feature_figure(np.zeros((60, 80, 3), np.uint8), features, one, count=4)
    ((words, width, letters), _), ((pictures, labels, columns), more) = asked
    assert labels == (
        *("frame", "largest, 8", "2nd largest, 2", "3rd largest, 1", "4th largest, 0.5"),
        *("", "smallest, 0.25", "2nd smallest, 0.5", "3rd smallest, 1", "4th smallest, 2"),
    )
    assert (columns, more) == (5, {"gap": 6})
    assert all(picture.shape == (150, 200, 3) for picture in pictures)
    assert words == (
        "level 3: 5 channels\ncondition 32\nmaps with their eigenvalue:\nred and blue are the signs"
    )
    assert (width, letters) == (200, 11)
    # In the middle of their cell.
    strip = module.text_strip(words, width, letters)
    top = (150 - len(strip)) // 2
    assert np.array_equal(pictures[5][top : top + len(strip)], strip)
    assert (pictures[5][:top] == 255).all()
    assert (pictures[5][top + len(strip) :] == 255).all()
    asked.clear()
    eigen_feature_figure(np.zeros((24, 80, 3), np.uint8), features, diagonal(-1, 1, 1, 1, 1.0))
    ((words, width, letters), _), ((_, labels, columns), _) = asked
    assert "W: 5 channels\ncondition none\n" in words
    assert (columns, width, letters) == (4, 250, 9)  # a cell has 75 rows, and a line an eighth
    assert len(labels) == 8


@pytest.mark.parametrize(
    ("shape", "count", "size"),
    [((80, 120), 2, (480, 320)), ((60, 80), 4, (250, 188)), ((60, 80), 9, (200, 150))],
)
def test_the_size_of_one_map(shape, count, size):
    assert module._size(np.zeros((*shape, 3)), count) == size
    assert module._size(np.zeros((1, 9999, 3)), 4) == (250, 1)


def test_a_map_is_more_red_than_blue_and_full_at_99_percent():
    values = np.full((10, 20), -2.0)
    values[0, 0] = 1.0
    values[0, 1] = -50.0
    for sign in (1, -1):
        picture = module._map(sign * values, (20, 10))
        assert picture.shape == (10, 20, 3)
        assert picture[5, 10].tolist() == RED.tolist()
        assert picture[0, 1].tolist() == RED.tolist()
        assert picture[0, 0].tolist() == diverging(np.array([[-0.5]]), 1.0)[0, 0].tolist()
    assert (module._map(0 * values, (20, 10)) == 255).all()


def test_half_of_a_colour():
    assert diverging(np.array([[-0.5, 0.5]]), 1.0)[0].tolist() == [[144, 178, 214], [216, 140, 149]]

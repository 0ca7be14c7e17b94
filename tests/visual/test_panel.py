"""A frame beside its flow: what a clip shows."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.visual import panel as module
from lcv.visual.colours import flow_to_colour, wheel_legend
from lcv.visual.overlay import draw_arrows
from lcv.visual.panel import (
    arrows_stretch,
    panel,
    panel_of_pictures,
    with_arrows,
    with_wheel,
)

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
FLOW = np.full((40, 60, 2), [0.5, 1.0], np.float32)


def test_frame_and_flow_are_side_by_side():
    shown = panel(IMAGE, FLOW, 2.0, arrows=False)
    assert np.array_equal(shown[:40, :60], IMAGE)
    assert np.array_equal(shown[:40, -60:], flow_to_colour(FLOW, 2.0))


@pytest.mark.parametrize(("scale", "times"), [(1.2, 10), (5, 2), (40, 1)])
def test_arrows_are_as_much_longer_as_the_scale_allows(scale, times):
    assert arrows_stretch(IMAGE.shape, scale) == times
    drawn = draw_arrows(IMAGE, FLOW, 16, stretch=times)
    assert np.array_equal(with_arrows(IMAGE, FLOW, scale), drawn)
    assert np.array_equal(panel(IMAGE, FLOW, scale, arrows=True)[:40, :60], drawn)


def test_wide_frames_are_reduced_by_whole_numbers():
    """Two of them beside each other are no wider than 3840 pixels, but for the gap."""
    for width, wanted in ((1920, 1920), (1922, 961), (3842, 1281)):
        tall = np.zeros((6, width, 3), np.uint8)
        assert panel_of_pictures(tall, tall, 1.0).shape[1] == 2 * wanted + 4


def test_the_words_under_the_pictures(monkeypatch):
    said = []
    monkeypatch.setattr(module, "side_by_side", lambda pictures, labels: said.append(labels))
    panel_of_pictures(IMAGE, IMAGE, 12.345)
    assert said == [["frame", "flow; full colour is 12.3 px"]]


@pytest.mark.parametrize(
    ("shape", "spacing"), [((40, 60), 16), ((100, 611), 16), ((612, 100), 17), ((1080, 1920), 53)]
)
def test_arrows_stand_further_apart_on_larger_frames(shape, spacing):
    assert arrows_stretch(shape, spacing / 5) == 5
    assert arrows_stretch(shape, spacing / 5 + 1e-6) == 2


def test_the_wheel_is_in_the_lower_right_corner_where_there_is_room():
    grey = np.full((168, 300, 3), 128, np.uint8)
    assert with_wheel(grey[:167]) is not None
    assert np.array_equal(with_wheel(grey[:167]), grey[:167])
    shown = with_wheel(grey)
    assert (grey == 128).all()
    legend = wheel_legend(24)
    y, x = np.mgrid[:24, :24] * 2 / 23 - 1
    corner = np.where((np.hypot(x, y) <= 1)[..., None], legend, 128)
    wanted = grey.copy()
    wanted[140:164, 272:296] = corner
    assert np.array_equal(shown, wanted)

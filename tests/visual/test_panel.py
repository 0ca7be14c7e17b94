"""A frame beside its flow: what a clip shows."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.visual.colours import flow_to_colour
from lcv.visual.overlay import draw_arrows
from lcv.visual.panel import arrows_stretch, panel, with_arrows

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

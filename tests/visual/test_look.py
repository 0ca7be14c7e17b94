"""One picture of a pair: what each of its parts shows, and what is said under them."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.visual import look as module
from lcv.visual.figures import Known
from lcv.visual.look import look


@pytest.fixture
def said(monkeypatch):
    """The pictures and labels that are put together."""
    found = []
    real = module.side_by_side
    monkeypatch.setattr(
        module, "side_by_side", lambda *given, **more: found.append(given) or real(*given, **more)
    )
    return found


def pair(height=40, width=60):
    image = np.full((height, width, 3), 128, np.uint8)
    return image, np.full((height, width, 2), (3.0, -4.0), np.float32)


def test_the_error_by_the_truth(said):
    image, flow = pair()
    valid = np.ones(flow.shape[:2], bool)
    valid[:10] = False
    page = look(image, flow, 5.0, truth=Known(np.zeros_like(flow), valid))
    ((pictures, labels),) = said
    assert labels[0] == "frame 1, 60×40"
    assert labels[1] == "flow; full colour is 5 px"
    assert labels[3] == "error: EPE 5 px, white from 5 px"
    assert (pictures[3][-1] == 255).all()
    assert page.shape[1] == 2 * 360 + 8


def test_what_is_known_without_the_truth(said):
    image, flow = pair()
    warp_error = np.full(flow.shape[:2], 16.0)
    warp_error[0, 0] = np.nan
    occluded = np.zeros(flow.shape[:2], bool)
    occluded[:10] = True
    look(image, flow, 5.0, warp_error=warp_error, occluded=occluded)
    ((pictures, labels),) = said
    first, second = labels[3].split("\n")
    assert first == "warp error: mean 16 of 255, white from 64"
    assert second == "forward and backward flow differ at 25 % of the pixels"
    assert (pictures[3][-1] == 64).all()
    assert pictures[3][0, 0].tolist() == list(module.SINTEL_UNKNOWN)


def test_large_frames_are_shown_smaller_with_arrows_that_can_be_seen(said):
    image, flow = pair(720, 1440)
    look(image, flow, 5.0, truth=Known(flow, np.ones(flow.shape[:2], bool)))
    ((pictures, labels),) = said
    assert all(picture.shape == (360, 720, 3) for picture in pictures)
    # 5 px are 2.5 px here, and arrows stand 20 px apart.
    assert labels[2] == "arrows, 5 times as long as the motion"
    assert labels[3] == "error: EPE 0 px, white from 1 px"


def test_what_is_not_known_is_said(said):
    image, flow = pair()
    nothing = np.zeros(flow.shape[:2], bool)
    look(image, flow, 40.0, truth=Known(flow, nothing))
    look(image, flow, 40.0, warp_error=np.full(flow.shape[:2], np.nan), occluded=nothing)
    (_, with_truth), (pictures, without) = said
    assert with_truth[2:] == ["arrows", "error: nothing is known, white from 1 px"]
    assert without[3].startswith("warp error: out of view, white from 64\n")
    assert (pictures[3] == (40, 62, 104)).all()


def test_the_white_of_the_error_is_what_99_percent_stay_below(said):
    image, flow = pair()
    truth = flow.copy()
    truth[..., 0] -= np.linspace(0, 10, truth[..., 0].size).reshape(truth.shape[:2])
    look(image, flow, 5.0, truth=Known(truth, np.ones(flow.shape[:2], bool)))
    assert said[0][1][3] == "error: EPE 5 px, white from 9.9 px"


def test_warp_errors_are_grey_up_to_their_white(said):
    image, flow = pair(1, 360)
    warp_error = np.zeros((1, 360))
    warp_error[0, :5] = [0.0, 1.0, 32.0, 64.0, 200.0]
    look(image, flow, 5.0, warp_error=warp_error, occluded=np.zeros((1, 360), bool))
    assert said[0][0][3][0, :5, 0].tolist() == [0, 4, 128, 255, 255]


def test_flow_at_another_size_is_that_of_the_nearest_pixels():
    flow = np.stack(np.meshgrid(np.arange(6.0), np.arange(4.0)), axis=-1)
    small = module._shrunk(flow, (2, 3, 3))
    assert (2 * small).tolist() == [
        [[1, 1], [3, 1], [5, 1]],
        [[1, 3], [3, 3], [5, 3]],
    ]
    large = module._shrunk(flow, (8, 12, 3))
    assert (large / 2).tolist() == flow.repeat(2, 0).repeat(2, 1).tolist()

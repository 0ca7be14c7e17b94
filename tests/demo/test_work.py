"""The page's work: shared colours, numbers against truth, and nothing done that nobody waits for."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.demo import work
from lcv.demo.frames import Chosen
from lcv.demo.stresses import Stresses
from lcv.demo.work import Latest, Settings, show_flows, show_inputs
from lcv.errors import ArgumentError
from lcv.predict.result import FlowResult
from lcv.visual.colours import flow_to_colour
from lcv.visual.error_maps import sintel_error_map
from lcv.visual.overlay import arrow_stretch, draw_arrows
from testing.footage import SIZE, moving


class Fixed:
    """A predictor that always gives one flow, and says that nothing is hidden."""

    def __init__(self, x: float) -> None:
        self.x = x

    def plan(self, height, width, *, occlusion):
        assert occlusion

    def __call__(self, first, second, *, occlusion):
        size = tuple(first.shape[2:])
        flow = np.tile(np.float32([self.x, 0.0]), (*size, 1))
        return FlowResult(flow, occluded=np.zeros(size, bool))


@pytest.fixture(autouse=True)
def networks(monkeypatch):
    """Networks whose flow is known: 3, 6 and 12 to the right."""
    made = {name: Fixed(3.0 * 2**k) for k, name in enumerate(work.MODELS)}
    monkeypatch.setattr(work, "network", lambda name, iters: made[name])


def chosen(truth: bool) -> Chosen:
    flow = np.tile(np.float32([3.0, 4.0]), (*SIZE, 1)) if truth else None
    return Chosen(tuple(moving(3)), "frames", truth=flow)


def test_without_truth_all_share_the_first_scale_and_nothing_is_measured():
    shown = list(show_flows(chosen(False), Settings()))
    assert [each.name for each in shown] == list(work.MODELS)
    assert {each.scale for each in shown} == {shown[0].scale}
    assert shown[0].scale == pytest.approx(3, rel=0.01)
    assert [each.epe for each in shown] == [None] * 3
    # What is longer than the scale is drawn darker, so these differ.
    assert not np.array_equal(shown[0].pictures["flow"], shown[1].pictures["flow"])
    kept = next(show_flows(chosen(False), Settings(), scale=20.0))
    assert kept.scale == 20.0


def test_with_truth_its_scale_is_taken_and_errors_are_measured_outside_the_patch():
    shown = list(show_flows(chosen(True), Settings(stresses=Stresses(patch=30.0))))
    assert [each.epe for each in shown] == pytest.approx([4.0, 5.0, (81 + 16) ** 0.5])
    assert shown[0].scale == pytest.approx(5, rel=0.01)
    assert "error" in shown[0].pictures
    assert show_inputs(chosen(True), Settings()).truth is not None


def test_work_that_nobody_wants_any_more_is_not_done():
    answers = iter([True, False])
    shown = list(show_flows(chosen(False), Settings(), wanted=lambda: next(answers)))
    assert [each.name for each in shown] == ["raft-small"]


def test_the_latest_request_of_a_page_is_the_one_that_is_wanted():
    latest, first, second = Latest(), Settings(iters=4), Settings(iters=5)
    assert latest.wants("a", first)
    latest.ask("a", first)
    latest.ask("a", second)
    assert not latest.wants("a", first)
    assert latest.wants("a", second)
    assert latest.wants("b", first)
    latest.shown("a", second)
    assert latest.shows("a", second)
    assert not latest.shows("a", first)
    latest.ask("a", None)
    assert not latest.shows("a", second)
    assert not latest.wants("a", second), "the page has new frames"
    latest.forget("a")
    assert latest.wants("a", first)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": ()}, "no network was chosen; there are raft-small"),
        ({"models": ("raft",)}, "'raft' was chosen; there are raft-small"),
        ({"iters": 0}, "0 iterations, wanted 1 to 32"),
        ({"iters": 33}, "33 iterations, wanted 1 to 32"),
        ({"side": 700}, "the longer side is 700, wanted one of"),
    ],
)
def test_settings_that_are_none(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        Settings(**wrong)


def test_what_is_hidden_is_red_on_pale_grey():
    picture = np.uint8([[[0, 0, 0], [90, 120, 150], [255, 255, 255]]])
    found = work._hidden(picture, np.array([[False, True, False]]))
    # Grey 120 is 0.55 · 120 + 110 = 176, of which a quarter is left under the red.
    assert found.tolist() == [[[110] * 3, [191, 66, 88], [250] * 3]]
    assert found.dtype == np.uint8


def test_the_pictures_of_a_network():
    given = chosen(True)
    (shown,) = show_flows(given, Settings(models=("raft-small",)))
    frame, flow = given.frames[0], shown.result.flow
    assert list(shown.pictures) == ["flow", "error", "occlusion", "arrows"]
    arrows = draw_arrows(frame, flow, 8, stretch=arrow_stretch(flow, 8))
    assert np.array_equal(shown.pictures["arrows"], arrows), "64 rows: 8 px, and no fewer"
    assert shown.stretch == arrow_stretch(flow, 8)
    error = sintel_error_map(flow, given.truth, valid=np.ones(SIZE, bool), limit=5.0)
    assert np.array_equal(shown.pictures["error"], error)
    assert np.array_equal(shown.pictures["flow"], flow_to_colour(flow, shown.scale))
    assert shown.seconds >= 0
    large = Chosen(tuple(moving(2, (240, 300))), "large")
    (shown,) = show_flows(large, Settings(models=("raft-small",)))
    flow = shown.result.flow
    arrows = draw_arrows(large.frames[0], flow, 20, stretch=arrow_stretch(flow, 20))
    assert np.array_equal(shown.pictures["arrows"], arrows), "240 rows: a twelfth"
    assert list(shown.pictures) == ["flow", "occlusion", "arrows"]


def test_inputs_are_the_pair_at_its_place_under_stress():
    given = chosen(True)
    seen = show_inputs(given, Settings(position=1))
    assert np.array_equal(seen.first, given.frames[1])
    assert np.array_equal(seen.second, given.frames[2])
    assert np.array_equal(seen.truth, flow_to_colour(given.truth, work.flow_scale(given.truth)))
    assert show_inputs(chosen(False), Settings()).truth is None
    dark = show_inputs(given, Settings(stresses=Stresses(gamma=0.5)))
    assert dark.first.mean() < given.frames[0].mean()


def test_what_is_asked_for_where_nothing_is_said():
    settings = Settings()
    assert (settings.position, settings.iters, settings.side) == (0, 12, 640)
    assert settings.models == tuple(work.MODELS)
    for iters in (1, 32):
        assert Settings(iters=iters).iters == iters


def test_what_a_page_shows_is_forgotten_with_it():
    latest, one, two = Latest(), Settings(iters=4), Settings(iters=5)
    latest.shown("a", one)
    latest.shown("b", two)
    latest.shown("a", None)
    assert not latest.shows("a", one)
    assert latest.shows("b", two)
    latest.ask("b", two)
    assert latest.shows("b", two), "asked again for what is shown"
    latest.forget("b")
    assert not latest.shows("b", two)
    latest.forget("nobody")

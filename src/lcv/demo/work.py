"""The page's work: one pair under stress, and the pictures of what each network makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from lcv.demo.frames import Chosen
from lcv.demo.limits import SIDES
from lcv.demo.networks import MODELS, network
from lcv.demo.stresses import NO_STRESS, Stresses
from lcv.errors import ArgumentError
from lcv.predict.result import FlowResult
from lcv.visual.colours import flow_to_colour, picture_scale
from lcv.visual.error_maps import end_point_error, sintel_error_map
from lcv.visual.legend import readable_scale
from lcv.visual.overlay import arrow_stretch, draw_arrows

FEWEST, MOST = 1, 32
"""Iterations that may be asked for."""
HIDDEN = np.array([196, 30, 58], np.uint8)
ERROR_LIMIT = 5.0
"""The error in pixels that is drawn white."""


@dataclass(frozen=True)
class Settings:
    """What the page asks for, beside the frames. side: their longer side is reduced to this"""

    position: int = 0
    models: tuple[str, ...] = tuple(MODELS)
    iters: int = 12
    stresses: Stresses = NO_STRESS
    side: int = SIDES[0]

    def __post_init__(self) -> None:
        unknown = [name for name in self.models if name not in MODELS]
        if unknown or not self.models:
            raise ArgumentError(
                f"{', '.join(map(repr, unknown)) or 'no network'} was chosen; there are "
                f"{', '.join(MODELS)}"
            )
        if not FEWEST <= self.iters <= MOST:
            raise ArgumentError(f"{self.iters} iterations, wanted {FEWEST} to {MOST}")
        if self.side not in SIDES:
            raise ArgumentError(f"the longer side is {self.side}, wanted one of {SIDES}")


@dataclass(frozen=True, eq=False)
class Shown:
    """What one network made of a pair.

    pictures: (H, W, 3) uint8 each: flow, error where the truth is known, occlusion, arrows
    seconds:  for flow in both directions, which the occlusion needs, once the network is loaded
    epe:      mean end-point error in pixels outside the patch; None without truth
    scale:    the motion in full colour
    stretch:  arrows are this many times as long as the motion
    """

    name: str
    result: FlowResult
    pictures: dict[str, np.ndarray]
    seconds: float
    epe: float | None
    scale: float
    stretch: float


@dataclass(frozen=True, eq=False)
class Inputs:
    """The pair as the networks see it, in eight bits, and the truth in colours."""

    first: np.ndarray
    second: np.ndarray
    truth: np.ndarray | None


class Latest:
    """What each open page asked for last: work on anything else is not worth finishing."""

    def __init__(self) -> None:
        self._asked: dict[str, Settings | None] = {}
        self._shown: dict[str, Settings] = {}

    def ask(self, session: str, settings: Settings | None) -> None:
        """settings: None when the page has new frames, and has not asked for anything yet"""
        self._asked[session] = settings
        if settings is None:
            self._shown.pop(session, None)

    def wants(self, session: str, settings: Settings) -> bool:
        return self._asked.get(session, settings) == settings

    def shown(self, session: str, settings: Settings | None) -> None:
        """Remember that the page shows all results for these settings; None: not of any."""
        self._shown.pop(session, None)
        if settings is not None:
            self._shown[session] = settings

    def shows(self, session: str, settings: Settings) -> bool:
        return self._shown.get(session) == settings

    def forget(self, session: str) -> None:
        self._asked.pop(session, None)
        self._shown.pop(session, None)


def show_inputs(chosen: Chosen, settings: Settings) -> Inputs:
    """The two frames under stress, and the truth where it is known."""
    first, second = settings.stresses(*chosen.pair(settings.position, settings.side))
    truth = None if chosen.truth is None else flow_to_colour(chosen.truth, flow_scale(chosen.truth))
    return Inputs(picture_of(first), picture_of(second), truth)


def show_flows(
    chosen: Chosen,
    settings: Settings,
    scale: float | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> Iterator[Shown]:
    """What each network makes of the pair, one by one, until nobody wants it any more.

    scale: the motion in full colour; by default that of the truth, else of the first flow. All
    networks share it, so that equal colours are equal motions.
    """
    first, second = settings.stresses(*chosen.pair(settings.position, settings.side))
    if chosen.truth is not None:
        scale = flow_scale(chosen.truth)
    for name in settings.models:
        if not wanted():
            return
        shown = _show(name, settings, chosen, picture_of(first), (first, second), scale)
        scale = shown.scale
        yield shown


def _show(
    name: str,
    settings: Settings,
    chosen: Chosen,
    picture: np.ndarray,
    frames: tuple[Tensor, Tensor],
    scale: float | None,
) -> Shown:
    predictor = network(name, settings.iters)
    # The plan is made beforehand, since it would count as time of the first pair.
    predictor.plan(*picture.shape[:2], occlusion=True)
    start = time.perf_counter()
    result = predictor(*frames, occlusion=True)
    seconds = time.perf_counter() - start
    scale = flow_scale(result.flow) if scale is None else scale
    assert result.occluded is not None
    spacing = max(8, min(picture.shape[:2]) // 12)
    stretch = arrow_stretch(result.flow, spacing)
    pictures, epe = {"flow": flow_to_colour(result.flow, scale)}, None
    if chosen.truth is not None:
        seen = settings.stresses.untouched(picture.shape[:2])
        error = sintel_error_map(result.flow, chosen.truth, valid=seen, limit=ERROR_LIMIT)
        pictures["error"] = error
        distance, known = end_point_error(result.flow, chosen.truth, seen)
        epe = float(distance[known].mean()) if known.any() else None
    pictures["occlusion"] = _hidden(picture, result.occluded)
    pictures["arrows"] = draw_arrows(picture, result.flow, spacing, stretch=stretch)
    return Shown(name, result, pictures, seconds, epe, scale, stretch)


def flow_scale(flow: np.ndarray) -> float:
    return readable_scale(picture_scale(flow))


def picture_of(image: Tensor) -> np.ndarray:
    array: np.ndarray = image[0].movedim(0, 2).round().byte().numpy()
    return np.ascontiguousarray(array)


def _hidden(picture: np.ndarray, occluded: np.ndarray) -> np.ndarray:
    """The frame in pale grey, and in red what the next frame does not show."""
    grey = picture.mean(axis=2, keepdims=True)
    pale = np.repeat((0.55 * grey + 110).clip(0, 255), 3, axis=2)
    marked = np.where(occluded[..., None], 0.25 * pale + 0.75 * HIDDEN, pale)
    return np.round(marked).astype(np.uint8)

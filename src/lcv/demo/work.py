"""The page's work: the networks, one pair under stress, and the pictures of what each makes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
from torch import Tensor, nn

from lcv.demo.frames import Chosen
from lcv.demo.stresses import NO_STRESS, Stresses
from lcv.errors import ArgumentError
from lcv.models.build import load
from lcv.models.types import FlowModel
from lcv.predict.predictor import Predictor
from lcv.visual.colours import flow_to_colour, picture_scale
from lcv.visual.error_maps import end_point_error, sintel_error_map
from lcv.visual.legend import readable_scale
from lcv.visual.overlay import arrow_stretch, draw_arrows

MODELS = {
    "raft-small": "with LCV",
    "raft-small-vanilla": "its twin without LCV",
    "raft-large": "with LCV",
}
"""The networks of the page: those whose weights come with the package, and `add_network`'s."""
FEWEST, MOST = 1, 32
"""Iterations that may be asked for."""
HIDDEN = np.array([196, 30, 58], np.uint8)
ERROR_LIMIT = 5.0
"""The error in pixels that is drawn white."""


@dataclass(frozen=True)
class Settings:
    """What the page asks for, beside the frames."""

    position: int = 0
    models: tuple[str, ...] = tuple(MODELS)
    iters: int = 12
    stresses: Stresses = NO_STRESS

    def __post_init__(self) -> None:
        unknown = [name for name in self.models if name not in MODELS]
        if unknown or not self.models:
            raise ArgumentError(
                f"{', '.join(map(repr, unknown)) or 'no network'} was chosen; there are "
                f"{', '.join(MODELS)}"
            )
        if not FEWEST <= self.iters <= MOST:
            raise ArgumentError(f"{self.iters} iterations, wanted {FEWEST} to {MOST}")


@dataclass(frozen=True, eq=False)
class Shown:
    """What one network made of a pair: pictures (H, W, 3) uint8, and numbers.

    seconds: for flow in both directions, which the occlusion needs, once the network is loaded
    stretch: arrows are this many times as long as the motion
    epe:     mean end-point error in pixels outside the patch; None without truth, as `error`
    """

    name: str
    flow: np.ndarray
    arrows: np.ndarray
    occlusion: np.ndarray
    error: np.ndarray | None
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
        self._asked: dict[str, Settings] = {}

    def ask(self, session: str, settings: Settings) -> None:
        self._asked[session] = settings

    def wants(self, session: str, settings: Settings) -> bool:
        return self._asked.get(session, settings) == settings

    def forget(self, session: str) -> None:
        self._asked.pop(session, None)


def add_network(name: str) -> None:
    """Offer a network that a factory of the user's builds, in this process's page."""
    _loaded(name)
    MODELS[name] = "a network of your own"


@cache
def network(name: str, iters: int) -> Predictor:
    """A network, ready for so many iterations if it iterates."""
    model = _loaded(name)
    iterates = cast(FlowModel, model).defaults.iters is not None
    return Predictor(model, iters=iters if iterates else None)


@cache
def _loaded(name: str) -> nn.Module:
    return load(name)


def show_inputs(chosen: Chosen, settings: Settings) -> Inputs:
    """The two frames under stress, and the truth where it is known."""
    first, second = settings.stresses(*chosen.pair(settings.position))
    truth = None if chosen.truth is None else flow_to_colour(chosen.truth, _scale(chosen.truth))
    return Inputs(_picture(first), _picture(second), truth)


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
    first, second = settings.stresses(*chosen.pair(settings.position))
    if chosen.truth is not None:
        scale = _scale(chosen.truth)
    for name in settings.models:
        if not wanted():
            return
        shown = _show(name, settings, chosen, _picture(first), (first, second), scale)
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
    scale = _scale(result.flow) if scale is None else scale
    error, epe = None, None
    if chosen.truth is not None:
        seen = settings.stresses.untouched(picture.shape[:2])
        error = sintel_error_map(result.flow, chosen.truth, valid=seen, limit=ERROR_LIMIT)
        distance, known = end_point_error(result.flow, chosen.truth, seen)
        epe = float(distance[known].mean()) if known.any() else None
    assert result.occluded is not None
    spacing = max(8, min(picture.shape[:2]) // 12)
    stretch = arrow_stretch(result.flow, spacing)
    return Shown(
        name,
        flow=flow_to_colour(result.flow, scale),
        arrows=draw_arrows(picture, result.flow, spacing, stretch=stretch),
        occlusion=_hidden(picture, result.occluded),
        error=error,
        seconds=seconds,
        epe=epe,
        scale=scale,
        stretch=stretch,
    )


def _scale(flow: np.ndarray) -> float:
    return readable_scale(picture_scale(flow))


def _picture(image: Tensor) -> np.ndarray:
    array: np.ndarray = image[0].movedim(0, 2).round().byte().numpy()
    return np.ascontiguousarray(array)


def _hidden(picture: np.ndarray, occluded: np.ndarray) -> np.ndarray:
    """The frame in pale grey, and in red what the next frame does not show."""
    grey = picture.mean(axis=2, keepdims=True)
    pale = np.repeat((0.55 * grey + 110).clip(0, 255), 3, axis=2)
    marked = np.where(occluded[..., None], 0.25 * pale + 0.75 * HIDDEN, pale)
    return np.round(marked).astype(np.uint8)

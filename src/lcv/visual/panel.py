"""A frame beside its flow in colours: one frame of a clip."""

from __future__ import annotations

import numpy as np
from PIL import Image

from lcv.visual.colours import flow_to_colour, wheel_legend
from lcv.visual.layout import side_by_side
from lcv.visual.overlay import draw_arrows, stretch_for

# Players and browsers show videos up to this width; wider ones are reduced by whole numbers.
WIDEST = 3840
SMALLEST_WHEEL = 24


def panel(image: np.ndarray, flow: np.ndarray, scale: float, arrows: bool) -> np.ndarray:
    """The frame, with arrows if asked for, and its flow; image: (H, W, 3) uint8; flow: (H, W, 2)"""
    left = with_arrows(image, flow, scale) if arrows else image
    return panel_of_pictures(left, flow_to_colour(flow, scale), scale)


def panel_of_pictures(left: np.ndarray, right: np.ndarray, scale: float) -> np.ndarray:
    """The same of the frame and the flow's colours as they were drawn."""
    factor = -(-2 * left.shape[1] // WIDEST)
    pictures = [np.asarray(Image.fromarray(each).reduce(factor)) for each in (left, right)]
    pictures[1] = with_wheel(pictures[1])
    return side_by_side(pictures, ["frame", f"flow; full colour is {scale:.3g} px"])


def with_arrows(image: np.ndarray, flow: np.ndarray, scale: float) -> np.ndarray:
    """The frame under arrows that leave something of it to be seen, whatever its size.

    scale: the length that most motions stay below; short ones are drawn longer
    """
    stretch = arrows_stretch(image.shape, scale)
    return draw_arrows(image, flow, spacing=_spacing(image.shape), stretch=stretch)


def arrows_stretch(shape: tuple[int, ...], scale: float) -> float:
    """How many times as long as the motion `with_arrows` draws them on a frame of this shape."""
    return stretch_for(scale, _spacing(shape))


def _spacing(shape: tuple[int, ...]) -> int:
    return max(16, max(shape[:2]) // 36)


def with_wheel(picture: np.ndarray) -> np.ndarray:
    """The picture with the wheel of directions in a corner, where there is room for one."""
    side = min(picture.shape[:2]) // 7
    if side < SMALLEST_WHEEL:
        return picture
    wheel, margin = wheel_legend(side), side // 6
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]  # type: ignore[misc]
    picture = picture.copy()
    corner = picture[-side - margin : -margin, -side - margin : -margin]
    corner[np.hypot(x, y) <= 1] = wheel[np.hypot(x, y) <= 1]
    return picture

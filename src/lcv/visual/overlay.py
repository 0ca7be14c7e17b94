"""Flow as arrows on the frame it belongs to."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.colours import UNKNOWN

ARROW = (255, 214, 10)
EDGE = (20, 24, 28)
STRETCHES = (2.0, 5.0, 10.0, 20.0)
# Drawn this much larger and then averaged, which is what makes the lines smooth.
FINE = 3


def draw_arrows(
    image: np.ndarray,
    flow: np.ndarray,
    spacing: int = 16,
    valid: np.ndarray | None = None,
    stretch: float = 1.0,
) -> np.ndarray:
    """The frame with an arrow every `spacing` pixels, (H, W, 3) uint8.

    An arrow begins at its pixel and ends where the flow takes it; a motion of less than half a
    pixel, as drawn, is a dot. Where nothing is known (not valid, NaN, beyond 1e9) there is none.

    image: (H, W, 3) uint8 RGB, or (H, W) grey, frame 1 of the pair; flow: (H, W, 2)
    valid: (H, W) bool
    stretch: arrows are this many times as long as the motion; say so beside the picture
    """
    image, flow = np.asarray(image), np.asarray(flow)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ShapeError(
            f"draw_arrows: image has shape {image.shape} of {image.dtype}, wanted (H, W, 3) uint8"
        )
    if flow.shape != (*image.shape[:2], 2):
        raise ShapeError(
            f"draw_arrows: flow has shape {flow.shape}, wanted {(*image.shape[:2], 2)} as the image"
        )
    if valid is not None and np.shape(valid) != image.shape[:2]:
        raise ShapeError(
            f"draw_arrows: valid has shape {np.shape(valid)}, wanted {image.shape[:2]} as the image"
        )
    if not isinstance(spacing, int | np.integer) or spacing < 1:
        raise ArgumentError(f"draw_arrows: spacing is {spacing!r}, wanted 1 or more whole pixels")
    if not (np.isfinite(stretch) and stretch > 0):
        raise ArgumentError(f"draw_arrows: stretch is {stretch!r}, wanted a positive number")
    height, width = image.shape[:2]
    # Half a step from the border, or in the middle of what is smaller than a step.
    y, x = np.meshgrid(_places(height, spacing), _places(width, spacing), indexing="ij")
    motion = flow[y, x].astype(np.float64)
    known = (np.abs(motion) <= UNKNOWN).all(-1)
    if valid is not None:
        known &= np.asarray(valid, bool)[y, x]
    starts = np.stack([x, y], axis=-1)[known]
    picture = image.copy()
    # Bands of rows keep the enlarged copy small, whatever the frame.
    ends = starts + _bounded(stretch * motion[known], 2.0 * (height + width))
    for top in range(0, height, 256):
        rows = slice(top, min(top + 256, height))
        picture[rows] = _with_arrows(picture[rows], starts, ends, top, spacing)
    return picture


def arrow_stretch(flow: np.ndarray, spacing: int = 16, valid: np.ndarray | None = None) -> float:
    """How many times longer than the motion arrows should be to be seen: 1, 2, 5, 10 or 20.

    The longest of these with which 90 % of the arrows are shorter than the spacing. A scene whose
    motion is below a tenth of a pixel is left as dots.
    """
    length = np.hypot(flow[..., 0], flow[..., 1]).astype(np.float64)
    known = length <= UNKNOWN
    if valid is not None:
        known &= np.asarray(valid, bool)
    return stretch_for(float(np.percentile(length[known], 90)) if known.any() else 0.0, spacing)


def stretch_for(length: float, spacing: int) -> float:
    """The same where the length that most motions stay below is known, in pixels."""
    if length < 0.1:
        return 1.0
    return max([1.0, *(times for times in STRETCHES if times * length <= spacing)])


def _places(length: int, spacing: int) -> np.ndarray:
    return np.arange(min(spacing, length) // 2, length, spacing)


def _bounded(motion: np.ndarray, longest: float) -> np.ndarray:
    """The same directions, none longer than `longest`: beyond the frame it makes no difference."""
    length = np.maximum(np.hypot(motion[:, 0], motion[:, 1]), 1e-12)[:, None]
    return motion * np.minimum(1.0, longest / length)


def _with_arrows(
    band: np.ndarray, starts: np.ndarray, ends: np.ndarray, top: int, spacing: int
) -> np.ndarray:
    """The rows of the frame from `top` on, with all arrows that reach into them."""
    height, width = band.shape[:2]
    margin = spacing + 4
    low = np.minimum(starts[:, 1], ends[:, 1]) - margin
    high = np.maximum(starts[:, 1], ends[:, 1]) + margin
    near = (high >= top) & (low < top + height)
    if not near.any():
        return band
    fine = Image.fromarray(band).resize((FINE * width, FINE * height), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(fine)
    # The middle of pixel k is at (k + 0.5)·FINE of the enlarged frame.
    middle = np.array([0.5, 0.5 - top])
    thick = max(1.0, min(2.0, spacing / 12)) * FINE
    shafts = [FINE * (points[near] + middle) for points in (starts, ends)]
    for colour, width_now, grow in ((EDGE, thick + FINE, 0.5 * FINE), (ARROW, thick, 0.0)):
        for start, end in zip(*shafts, strict=True):
            _arrow(pen, start, end, colour, width_now, grow, FINE * spacing)
    return np.asarray(fine.resize((width, height), Image.Resampling.BOX))


def _arrow(
    pen: ImageDraw.ImageDraw,
    start: np.ndarray,
    end: np.ndarray,
    colour: tuple[int, int, int],
    thick: float,
    grow: float,
    spacing: float,
) -> None:
    step = end - start
    length = float(np.hypot(*step))
    radius = thick / 2 + 0.4 * grow
    if length >= 0.5 * FINE:
        along = step / length
        across = np.array([-along[1], along[0]])
        head = min(0.36 * spacing, max(0.45 * length, 1.6 * thick))
        neck = end - head * along
        pen.line([tuple(start), tuple(neck + 0.2 * head * along)], fill=colour, width=round(thick))
        tip = end + 1.6 * grow * along
        back = neck - 0.8 * grow * along
        side = (0.42 * head + 1.1 * grow) * across
        pen.polygon([tuple(tip), tuple(back + side), tuple(back - side)], fill=colour)
        return
    pen.ellipse([*(start - radius), *(start + radius)], fill=colour)

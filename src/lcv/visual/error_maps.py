"""Errors of flow as pictures, in the styles of the two benchmarks."""

from __future__ import annotations

import numpy as np

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.colours import UNKNOWN

# KITTI 2015's table: the colour of a normalised error n from each bound up to the next. An error
# of 1 is where a pixel becomes an outlier, and the colours turn from blue to red.
KITTI_BOUNDS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
KITTI_COLOURS = (
    *((49, 54, 149), (69, 117, 180), (116, 173, 209), (171, 217, 233), (224, 243, 248)),
    *((254, 224, 144), (253, 174, 97), (244, 109, 67), (215, 48, 39), (165, 0, 38)),
)
# An error that Sintel's style draws white, in pixels.
SINTEL_LIMIT = 10.0
# Where Sintel's style knows nothing: no grey, so that it cannot be taken for an error.
SINTEL_UNKNOWN = (40, 62, 104)


def end_point_error(
    flow: np.ndarray, truth: np.ndarray, valid: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """|flow − truth|₂ in pixels and where both are known: (H, W) float64, (H, W) bool.

    Unknown is what is not valid, NaN or beyond 1e9 in either; the error is 0 there.
    """
    flow, truth = np.asarray(flow), np.asarray(truth)
    for name, array in (("flow", flow), ("truth", truth)):
        if array.ndim != 3 or array.shape[2] != 2:
            raise ShapeError(f"end_point_error: {name} has shape {array.shape}, wanted (H, W, 2)")
    if flow.shape != truth.shape:
        raise ShapeError(
            f"end_point_error: flow is {flow.shape[1]}×{flow.shape[0]}, truth "
            f"{truth.shape[1]}×{truth.shape[0]}; wanted the same size"
        )
    known = (np.abs(flow) <= UNKNOWN).all(2) & (np.abs(truth) <= UNKNOWN).all(2)
    known &= _mask("valid", valid, known)
    with np.errstate(invalid="ignore"):  # infinity less infinity, where both are unknown
        apart = np.where(known[..., None], flow.astype(np.float64) - truth, 0.0)
    return np.hypot(apart[..., 0], apart[..., 1]), known


def sintel_error_map(
    flow: np.ndarray,
    truth: np.ndarray,
    valid: np.ndarray | None = None,
    limit: float = SINTEL_LIMIT,
) -> np.ndarray:
    """Error as grey, in the way of Sintel's page of results, (H, W, 3) uint8.

        grey = 255 · min(|flow − truth|, limit) / limit

    Black is exact, white is `limit` pixels or more. The page does not publish its limit; ours is
    10 px and belongs beside the picture. Unknown is dark blue, which no error is.

    flow, truth: (H, W, 2); valid: (H, W) bool
    """
    if not (np.isfinite(limit) and limit > 0):
        raise ArgumentError(
            f"sintel_error_map: limit is {limit!r}, wanted a positive number of pixels"
        )
    error, known = end_point_error(flow, truth, valid)
    grey = np.round(255 * np.minimum(error / limit, 1)).astype(np.uint8)
    picture = np.repeat(grey[..., None], 3, axis=2)
    picture[~known] = SINTEL_UNKNOWN
    return picture


def kitti_error_map(
    flow: np.ndarray,
    truth: np.ndarray,
    valid: np.ndarray | None = None,
    visible: np.ndarray | None = None,
) -> np.ndarray:
    """Error in the logarithmic colours of KITTI 2015, (H, W, 3) uint8.

        n = min(|flow − truth| / 3 px, |flow − truth| / (5 % of |truth|))

    Blue is right and red is wrong: n ≥ 1 is an outlier of Fl, and every colour is twice the error
    of the one before. Unknown is black, but for pixels beside known ones: sparse truth is drawn
    3×3, as by the benchmark, so that it can be seen. (The benchmark lets later pixels cover
    earlier ones; here what is known always shows its own error.)

    flow, truth: (H, W, 2); valid: (H, W) bool
    visible: (H, W) bool, where frame 2 sees the point too (KITTI's flow_noc); the rest is drawn
        at half the brightness
    """
    error, known = end_point_error(flow, truth, valid)
    colours = np.array(KITTI_COLOURS, np.uint8)
    n = kitti_error(error, truth, known)
    picture = colours[np.searchsorted(KITTI_BOUNDS, n, side="right") - 1]
    if visible is not None:
        picture = np.where(_mask("visible", visible, known)[..., None], picture, picture // 2)
    picture[~known] = 0
    return spread(picture, known)


def kitti_error(error: np.ndarray, truth: np.ndarray, known: np.ndarray) -> np.ndarray:
    """n of `kitti_error_map`, (H, W): error over the larger of 3 px and 5 % of the true length."""
    length = np.hypot(*np.moveaxis(np.where(known[..., None], truth, 0.0), 2, 0))
    return error / np.maximum(3.0, 0.05 * length)


def spread(picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Unknown pixels beside known ones take the colour of the last of these in reading order.

    picture: (H, W, 3), known: (H, W) bool → (H, W, 3)
    """
    height, width = known.shape
    padded = np.pad(picture, ((1, 1), (1, 1), (0, 0)))
    there = np.pad(known, 1)
    grown = picture.copy()
    for dy in range(3):
        for dx in range(3):
            here = there[dy : dy + height, dx : dx + width] & ~known
            grown[here] = padded[dy : dy + height, dx : dx + width][here]
    return grown


def _mask(name: str, mask: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    if mask is None:
        return np.ones_like(like)
    if np.shape(mask) != like.shape:
        raise ShapeError(f"{name} has shape {np.shape(mask)}, wanted {like.shape} as flow")
    return np.asarray(mask, bool)

"""All of a pair in one picture: the frame, its flow, its arrows, and what is known of the error."""

from __future__ import annotations

import numpy as np

from lcv.visual.colours import flow_to_colour
from lcv.visual.error_maps import SINTEL_UNKNOWN, end_point_error, sintel_error_map
from lcv.visual.figures import Known, fit
from lcv.visual.layout import side_by_side
from lcv.visual.legend import readable_scale
from lcv.visual.panel import arrows_stretch, with_arrows, with_wheel

WIDEST = 720  # of each of the four pictures
WARP_WHITE = 64  # the warp error that is white, of 255


def look(
    image: np.ndarray,
    flow: np.ndarray,
    scale: float,
    *,
    truth: Known | None = None,
    warp_error: np.ndarray | None = None,
    occluded: np.ndarray | None = None,
) -> np.ndarray:
    """Four pictures in one, (H', W', 3) uint8.

    image: (H, W, 3) uint8, frame 1; flow: (H, W, 2); scale: in full colour, in pixels
    truth: of the error; without it warp_error (H, W), NaN where unknown, and occluded (H, W) bool
    """
    frame = fit(image, most=WIDEST)
    small = _shrunk(flow, frame.shape)
    ratio = frame.shape[1] / image.shape[1]
    times = arrows_stretch(frame.shape, scale * ratio)
    longer = "" if times == 1 else f", {times:g} times as long as the motion"
    error, words = _error(flow, truth, warp_error, occluded)
    pictures = [
        frame,
        with_wheel(fit(flow_to_colour(flow, scale), most=WIDEST)),
        with_arrows(frame, small, scale * ratio),
        fit(error, most=WIDEST),
    ]
    height, width = image.shape[:2]
    labels = [f"frame 1, {width}×{height}", f"flow; full colour is {scale:.3g} px"]
    return side_by_side(pictures, [*labels, f"arrows{longer}", words], columns=2, gap=8)


def _error(
    flow: np.ndarray,
    truth: Known | None,
    warp_error: np.ndarray | None,
    occluded: np.ndarray | None,
) -> tuple[np.ndarray, str]:
    if truth is not None:
        apart, known = end_point_error(flow, truth.flow, truth.valid)
        number = f"EPE {apart[known].mean():.3g} px" if known.any() else "nothing is known"
        limit = readable_scale(max(1.0, float(np.percentile(apart, 99))))
        picture = sintel_error_map(flow, truth.flow, truth.valid, limit)
        return picture, f"error: {number}, white from {limit:g} px"
    assert warp_error is not None
    assert occluded is not None
    known = np.isfinite(warp_error)
    grey = np.rint(np.nan_to_num(warp_error) * (255 / WARP_WHITE)).clip(0, 255).astype(np.uint8)
    picture = np.where(known[..., None], grey[..., None], np.array(SINTEL_UNKNOWN, np.uint8))
    mean = f"mean {warp_error[known].mean():.2g} of 255" if known.any() else "out of view"
    return picture, (
        f"warp error: {mean}, white from {WARP_WHITE}\n"
        f"forward and backward flow differ at {100 * occluded.mean():.2g} % of the pixels"
    )


def _shrunk(flow: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The flow at another size, by its nearest pixels, in pixels of that size."""
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(int)
        for new, old in zip(shape[:2], flow.shape[:2], strict=True)
    )
    return flow[rows][:, columns] * (shape[1] / flow.shape[1])

"""Flow as colour, by the wheel of Middlebury: hue is direction, saturation is length."""

from __future__ import annotations

import numpy as np

from lcv.errors import ArgumentError, ShapeError

# Steps of the wheel from each of its six corners to the next (Baker et al.): the eye tells
# reds and yellows apart better than greens, so they get more.
STEPS = (15, 6, 4, 11, 13, 6)
CORNERS = ("100", "110", "010", "011", "001", "101")
# Added to the longest motion, so that a flow of zeros has a scale too.
EPSILON = 1e-5
# Of a picture's scale: the share of pixels below it, and the least it is, in pixels.
SHARE, SMALLEST_SCALE = 99.0, 1.0
# Middlebury's files say "unknown" with values beyond this.
UNKNOWN = 1e9


def colour_wheel() -> np.ndarray:
    """The 55 colours of the wheel, (55, 3) in 0..255: red, yellow, green, cyan, blue, magenta."""
    wheel = []
    for step, here, there in zip(STEPS, CORNERS, CORNERS[1:] + CORNERS[:1], strict=True):
        ramp = np.floor(255 * np.arange(step) / step)
        # One channel rises or falls between two corners; a falling one is 255 − the ramp.
        between = {"00": 0 * ramp, "11": 0 * ramp + 255, "01": ramp, "10": 255 - ramp}
        wheel.append(np.stack([between[a + b] for a, b in zip(here, there, strict=True)], axis=1))
    return np.concatenate(wheel)


def flow_scale(flow: np.ndarray, valid: np.ndarray | None = None) -> float:
    """The length that is drawn in full colour if none is given: the longest known motion + 1e-5.

    flow: (H, W, 2); valid: (H, W) bool
    """
    u, v, known = _components("flow_scale", flow, valid)
    length = np.sqrt(np.square(u) + np.square(v))
    return float(np.max(length, where=known, initial=0.0) + EPSILON)


def picture_scale(flow: np.ndarray, valid: np.ndarray | None = None) -> float:
    """The scale of a picture that nobody has chosen: 99 % of the known pixels move less than this.

    A few wild pixels do not make the rest pale, and below 1 px a still scene is not drawn as noise.
    """
    u, v, known = _components("picture_scale", flow, valid)
    length = np.sqrt(np.square(u) + np.square(v))[known]
    return (
        max(SMALLEST_SCALE, float(np.percentile(length, SHARE))) if length.size else SMALLEST_SCALE
    )


def flow_to_colour(
    flow: np.ndarray, max_flow: float | None = None, valid: np.ndarray | None = None
) -> np.ndarray:
    """Flow (H, W, 2) as a picture (H, W, 3) uint8 RGB.

    With r the length divided by the scale and c the wheel's colour of the direction, the colour
    is 1 − r (1 − c) up to r = 1, and 0.75 c beyond. White is no motion; right is red, down is
    yellow, left is cyan, up is violet.

    max_flow: the scale, in pixels; `flow_scale(flow, valid)` if not given. Give it to make
        pictures comparable, and print it beside them.
    valid: (H, W) bool. What is not valid, NaN or beyond 1e9 is black.

    Facts: equal to flow_vis, and so to Middlebury's own program, on every flow without holes.
    """
    u, v, known = _components("flow_to_colour", flow, valid)
    if max_flow is not None and not (np.isfinite(max_flow) and max_flow > 0):
        raise ArgumentError(
            f"flow_to_colour: max_flow is {max_flow!r}, wanted a positive number of pixels"
        )
    # The arithmetic stays in the type of the flow, and so rounds down where flow_vis does.
    scale = u.dtype.type(flow_scale(flow, valid) if max_flow is None else max_flow)
    u, v = u / scale, v / scale
    wheel = colour_wheel()
    r = np.sqrt(np.square(u) + np.square(v))
    place = (np.arctan2(-v, -u) / np.pi + 1) / 2 * (len(wheel) - 1)
    before = np.floor(place).astype(np.int32)
    after = (before + 1) % len(wheel)
    part = (place - before)[..., None]
    c = (1 - part) * (wheel[before] / 255.0) + part * (wheel[after] / 255.0)
    r = r[..., None]
    shade = np.where(r <= 1, 1 - r * (1 - c), 0.75 * c)
    picture = np.floor(255 * shade).astype(np.uint8)
    picture[~known] = 0
    return picture


def wheel_legend(size: int = 128) -> np.ndarray:
    """A disc of all directions and lengths, (size, size, 3) uint8, white around it.

    The rim is full length, the point right of the centre is motion to the right.
    """
    if size < 3:
        raise ArgumentError(f"wheel_legend: size is {size!r}, wanted at least 3 pixels")
    reach = np.linspace(-1, 1, size)
    flow = np.stack(np.meshgrid(reach, reach), axis=-1)
    legend = flow_to_colour(flow, max_flow=1.0)
    legend[np.hypot(flow[..., 0], flow[..., 1]) > 1] = 255
    return legend


def _components(
    function: str, flow: np.ndarray, valid: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flow = np.asarray(flow)
    if flow.ndim != 3 or flow.shape[2] != 2:
        raise ShapeError(f"{function}: flow has shape {flow.shape}, wanted (H, W, 2)")
    if not np.issubdtype(flow.dtype, np.floating):
        flow = flow.astype(np.float64)
    # NaN fails the comparison too.
    known = (np.abs(flow) <= UNKNOWN).all(2)
    if valid is not None:
        if np.shape(valid) != flow.shape[:2]:
            raise ShapeError(
                f"{function}: valid has shape {np.shape(valid)}, wanted {flow.shape[:2]} as flow"
            )
        known &= np.asarray(valid, bool)
    flow = np.where(known[..., None], flow, flow.dtype.type(0))
    return flow[..., 0], flow[..., 1], known

"""Pictures with their legends and numbers: one flow, one error, a difference, and the figures that
papers print: methods with their errors, and two methods with their difference.

Flow and truth are (H, W, 2), masks (H, W) bool, frames (H, W, 3) uint8; every function returns
(H', W', 3) uint8. Numbers come from whoever measured them, so that there is one place for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.colours import flow_to_colour, picture_scale
from lcv.visual.error_maps import (
    SINTEL_LIMIT,
    end_point_error,
    kitti_error_map,
    sintel_error_map,
    spread,
)
from lcv.visual.layout import side_by_side
from lcv.visual.legend import (
    grey_key,
    key_cell,
    kitti_key,
    px,
    readable_scale,
    wheel_key,
    with_key,
)
from lcv.visual.text import text_strip

STYLES = ("sintel", "kitti")
SMALLEST = 0.01


@dataclass(frozen=True)
class Known:
    """A flow and where it is known: flow (H, W, 2), valid (H, W) bool."""

    flow: np.ndarray
    valid: np.ndarray


@dataclass(frozen=True)
class ErrorStyle:
    """How errors are drawn: `name` is one of STYLES; `limit` is Sintel's white, in pixels."""

    name: str = "sintel"
    limit: float = SINTEL_LIMIT

    def __post_init__(self) -> None:
        if self.name not in STYLES:
            raise ArgumentError(
                f"there is no style of error maps {self.name!r}; there are {', '.join(STYLES)}"
            )

    def draw(self, flow: Known, truth: Known, visible: np.ndarray | None = None) -> np.ndarray:
        """The map alone. What frame 2 does not see is darker in KITTI's style only."""
        valid = flow.valid & truth.valid
        if self.name == "kitti":
            return kitti_error_map(flow.flow, truth.flow, valid, visible)
        return sintel_error_map(flow.flow, truth.flow, valid, self.limit)

    def key(self, height: int) -> np.ndarray:
        """Its legend."""
        return kitti_key(height) if self.name == "kitti" else grey_key(self.limit, height)


def common_scale(*flows: Known) -> float:
    """The automatic scale of flows that are to be compared: the largest of theirs, rounded up."""
    return readable_scale(max(picture_scale(each.flow, each.valid) for each in flows))


def flow_picture(flow: Known, scale: float) -> np.ndarray:
    """Flow in the colours of the wheel, with the wheel and its scale beside it."""
    return with_key(flow_to_colour(flow.flow, scale, flow.valid), wheel_key(scale, _key_size(flow)))


def error_picture(
    flow: Known,
    truth: Known,
    style: ErrorStyle,
    number: str = "",
    visible: np.ndarray | None = None,
) -> np.ndarray:
    """An error map with its legend, and the number it amounts to under it."""
    _same_size(flow, truth)
    height = max(170, min(320, flow.flow.shape[0]))
    picture = style.draw(flow, truth, visible)
    return with_key(_numbered(picture, number), style.key(height))


def difference(a: Known, b: Known) -> Known:
    """a − b, known where both are."""
    _same_size(a, b)
    _, valid = end_point_error(a.flow, b.flow, a.valid & b.valid)
    first, second = (np.where(valid[..., None], x.flow, 0).astype(np.float32) for x in (a, b))
    return Known(first - second, valid)


def difference_scale(apart: Known) -> float:
    """The automatic scale of a difference: as long as 99 % of it, rounded up.

    The longest would do for flow. Two flows differ most at a few pixels on the border of things,
    and beside those nothing else would show.
    """
    length = np.hypot(apart.flow[..., 0], apart.flow[..., 1])[apart.valid]
    most = float(np.quantile(length, 0.99)) if length.size else 0.0
    return readable_scale(max(SMALLEST, most))


def difference_picture(a: Known, b: Known, scale: float | None = None) -> np.ndarray:
    """The difference of two flows twice: as a vector in the wheel's colours, and its length as grey.

    scale: the difference in full colour and white; `difference_scale` if not given
    """
    apart = difference(a, b)
    scale = difference_scale(apart) if scale is None else scale
    pictures = [flow_to_colour(apart.flow, scale, apart.valid), _length(apart, scale)]
    page = side_by_side(pictures, ["difference", _length_label(apart, scale)])
    return with_key(page, wheel_key(scale, _key_size(a)))


def mean_length(flow: Known) -> float:
    """The mean length of what is known, in pixels; 0 if nothing is."""
    length = np.hypot(*np.moveaxis(flow.flow.astype(np.float64), 2, 0))[flow.valid]
    return float(length.mean()) if length.size else 0.0


def methods_figure(
    frames: Sequence[np.ndarray],
    flows: Mapping[str, Known],
    truth: Known,
    *,
    style: ErrorStyle,
    numbers: Mapping[str, str],
    scale: float | None = None,
    width: int | None = None,
) -> np.ndarray:
    """Inputs and truth, then a column a method: its flow, its error, and its number under them.

        frame 1    ground truth    method …
        frame 2    legends         error …

    flows: by the name to print;  numbers: what stands under each error, by the same names
    scale: of all flows; by default the longest motion of the truth and the methods
    width: of one picture, in pixels; by default the frames', but at least 240 and at most 480
    """
    _check_frames(frames, truth, 2)
    for flow in flows.values():
        _same_size(flow, truth)
    scale = common_scale(truth, *flows.values()) if scale is None else scale
    true = spread(_colours(truth, scale), truth.valid)  # sparse truth would hardly be seen
    top = [frames[0], true, *(_colours(flow, scale) for flow in flows.values())]
    errors = [style.draw(flow, truth) for flow in flows.values()]
    resized = [fit(picture, width) for picture in (*top, frames[1], *errors)]
    columns = len(top)
    height, wide = resized[0].shape[:2]
    keys = wheel_key(scale, _in_cell(height)), style.key(max(170, 4 * height // 5))
    legends = key_cell(height, wide, *keys)
    pictures = [*resized[: columns + 1], legends, *resized[columns + 1 :]]
    labels = ["frame 1", "ground truth", *flows, "frame 2", ""]
    labels += [numbers.get(name, "") for name in flows]
    return side_by_side(pictures, labels, columns, gap=6)


def difference_figure(
    frame: np.ndarray,
    flows: Mapping[str, Known],
    *,
    numbers: Mapping[str, str] | None = None,
    scale: float | None = None,
    apart_scale: float | None = None,
    width: int | None = None,
) -> np.ndarray:
    """Flow by two methods and their difference.

        frame      method 1      method 2
        legends    difference    its length

    flows: exactly two, by the name to print;  apart_scale: of the difference, by default
    `difference_scale`;  the rest as for `methods_figure`
    """
    if len(flows) != 2:
        raise ArgumentError(
            f"a figure of a difference needs two flows, got {len(flows)}: {', '.join(flows)}"
        )
    (first, a), (second, b) = flows.items()
    _check_frames([frame], a, 1)
    apart = difference(a, b)
    scale = common_scale(a, b) if scale is None else scale
    own = difference_scale(apart) if apart_scale is None else apart_scale
    numbers = numbers or {}
    pictures = [frame, _colours(a, scale), _colours(b, scale)]
    pictures += [_colours(apart, own), _length(apart, own)]
    resized = [fit(picture, width) for picture in pictures]
    height, wide = resized[0].shape[:2]
    keys = [
        _titled(wheel_key(each, _in_cell(height)), title)
        for each, title in ((scale, "flow"), (own, "difference"))
    ]
    resized.insert(3, key_cell(height, wide, *keys))
    names = ["\n".join(filter(None, (name, numbers.get(name)))) for name in (first, second)]
    labels = ["frame 1", *names, "", f"{first} - {second}"]
    labels += [_length_label(apart, own)]
    return side_by_side(resized, labels, 3, gap=6)


def _colours(flow: Known, scale: float) -> np.ndarray:
    return flow_to_colour(flow.flow, scale, flow.valid)


def _length(flow: Known, limit: float) -> np.ndarray:
    return sintel_error_map(flow.flow, np.zeros_like(flow.flow), flow.valid, limit)


def _length_label(flow: Known, limit: float) -> str:
    return f"its length, mean {px(mean_length(flow))}, white from {px(limit)}"


def _numbered(picture: np.ndarray, number: str) -> np.ndarray:
    return side_by_side([picture], [number]) if number else picture


def _titled(key: np.ndarray, title: str) -> np.ndarray:
    return np.concatenate([text_strip(title, key.shape[1], 12), key])


def _in_cell(height: int) -> int:
    return max(72, min(150, 2 * height // 5))


def _key_size(flow: Known) -> int:
    return max(72, min(160, min(flow.flow.shape[:2]) // 3))


def fit(picture: np.ndarray, width: int | None = None, most: int = 480) -> np.ndarray:
    """The picture at a width that suits a figure; smaller ones grow by whole factors."""
    height, found = picture.shape[:2]
    wanted = width or min(most, found * -(-(most // 2) // found))
    if wanted == found:
        return picture
    size = wanted, max(1, round(height * wanted / found))
    way = Image.Resampling.LANCZOS if wanted < found else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(picture).resize(size, way))


def _same_size(a: Known, b: Known) -> None:
    if a.flow.shape != b.flow.shape:
        raise ShapeError(
            f"the flows are {a.flow.shape[1]}×{a.flow.shape[0]} and "
            f"{b.flow.shape[1]}×{b.flow.shape[0]} pixels; wanted the same size"
        )


def _check_frames(frames: Sequence[np.ndarray], flow: Known, count: int) -> None:
    if len(frames) != count:
        raise ArgumentError(f"wanted {count} frames for this figure, got {len(frames)}")
    for number, frame in enumerate(frames, start=1):
        if frame.shape[:2] != flow.flow.shape[:2]:
            raise ShapeError(
                f"frame {number} is {frame.shape[1]}×{frame.shape[0]}, the flow "
                f"{flow.flow.shape[1]}×{flow.flow.shape[0]}; wanted the same size"
            )

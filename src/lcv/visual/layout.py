"""Pictures side by side in a grid, with words under each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lcv.errors import ArgumentError, ShapeError
from lcv.visual.text import PAPER, line_height, text_strip


def side_by_side(
    pictures: Sequence[np.ndarray],
    labels: Sequence[str] | None = None,
    columns: int | None = None,
    gap: int = 4,
) -> np.ndarray:
    """One picture of many, (H, W, 3) uint8, row after row, on white.

    pictures: (h, w, 3) uint8 each, of any sizes; in a cell that is larger they are centred
    labels: one a picture, under it; may have several lines. The text shrinks, and then loses its
        end, rather than leave its cell
    columns: all in one row if not given
    gap: white pixels between neighbours

    Facts: the size depends on the sizes of the pictures and on the number of lines of the labels
    alone, so frames of a video fit together. Without labels every picture is in it unchanged.
    """
    checked = [_checked(number, picture) for number, picture in enumerate(pictures)]
    if not checked:
        raise ArgumentError("side_by_side: there are no pictures, wanted at least one")
    if labels is not None and len(labels) != len(checked):
        raise ArgumentError(
            f"side_by_side: {len(labels)} labels for {len(checked)} pictures, wanted one for each"
        )
    if columns is not None and columns < 1:
        raise ArgumentError(f"side_by_side: columns is {columns!r}, wanted 1 or more")
    if gap < 0:
        raise ArgumentError(f"side_by_side: gap is {gap!r}, wanted 0 or more pixels")
    columns = min(columns or len(checked), len(checked))
    rows = [checked[start : start + columns] for start in range(0, len(checked), columns)]
    words = [""] * len(checked) if labels is None else [str(label) for label in labels]
    widths = [max(row[k].shape[1] for row in rows if k < len(row)) for k in range(columns)]
    heights = [max(picture.shape[0] for picture in row) for row in rows]
    size = label_size(max(widths))
    lines = [
        0 if labels is None else max(text.count("\n") + 1 for text in words[start:][: len(row)])
        for start, row in zip(range(0, len(checked), columns), rows, strict=True)
    ]
    below = [count * line_height(size) for count in lines]
    height = sum(heights) + sum(below) + gap * (len(rows) - 1)
    page = np.full((height, sum(widths) + gap * (columns - 1), 3), PAPER, np.uint8)
    top = 0
    for r, row in enumerate(rows):
        left = 0
        for k, picture in enumerate(row):
            h, w = picture.shape[:2]
            y, x = top + (heights[r] - h) // 2, left + (widths[k] - w) // 2
            page[y : y + h, x : x + w] = picture
            if below[r]:
                strip = text_strip(words[r * columns + k], widths[k], size, lines[r])
                page[top + heights[r] :][: below[r], left : left + widths[k]] = strip
            left += widths[k] + gap
        top += heights[r] + below[r] + gap
    return page


def label_size(width: int) -> int:
    """The height of letters that suits a picture of this width, in pixels."""
    return min(26, max(11, math.ceil(width / 26)))


def _checked(number: int, picture: np.ndarray) -> np.ndarray:
    picture = np.asarray(picture)
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or not picture.size:
        raise ShapeError(
            f"side_by_side: picture {number} has shape {picture.shape} of {picture.dtype}, wanted "
            f"(h, w, 3) of uint8"
        )
    return picture

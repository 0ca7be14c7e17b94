"""Erased rectangles: parts of frame 2 painted with its mean colour, as if something hid them.

The truth does not change: the network must fill in the motion of what it cannot see.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.augment.means import exact_sum, mean_of
from lcv.data.augment.recipes import Eraser
from lcv.data.random import Draws


@dataclass(frozen=True, eq=False)
class Rectangles:
    """m rectangles for b pairs: first row and column, height and width, all (b, m) int64, in pixels
    of the source; is_used: (b, m) bool. One may reach beyond the image; what is there of it counts.
    """

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor
    is_used: Tensor


def draw_rectangles(eraser: Eraser, draws: Draws, heights: Tensor, widths: Tensor) -> Rectangles:
    """Corners anywhere in the image of (b,) heights and widths, sides as the eraser says."""
    m = eraser.most
    number = draws.integers("augment: erased rectangles", (1,), 1, m + 1)
    erases = draws.happens("augment: erase", (1,), eraser.probability)
    return Rectangles(
        (draws.bits("augment: erased top", (m,)) * heights[:, None]) >> 32,
        (draws.bits("augment: erased left", (m,)) * widths[:, None]) >> 32,
        draws.integers("augment: erased height", (m,), *eraser.side),
        draws.integers("augment: erased width", (m,), *eraser.side),
        erases & (torch.arange(m, device=number.device) < number),
    )


def erase(image: Tensor, inside: Tensor, rectangles: Rectangles) -> Tensor:
    """Image (b, 3, h, w), float, with the rectangles in its own mean colour.

    inside: (b, h, w) bool, the pixels that belong to the sample. The mean is taken before anything
    is erased. **Departure:** it is not cut to whole grey levels, as the authors' bytes are.
    """
    h, w = image.shape[-2:]
    count = inside.sum((-2, -1))[:, None]
    colour = mean_of(exact_sum(image, inside[:, None]), count).to(image.dtype)  # (b, 3)
    y = torch.arange(h, device=image.device)
    x = torch.arange(w, device=image.device)
    top, left = rectangles.top[..., None], rectangles.left[..., None]  # (b, m, 1)
    in_rows = (y >= top) & (y < top + rectangles.height[..., None])  # (b, m, h)
    in_columns = (x >= left) & (x < left + rectangles.width[..., None])  # (b, m, w)
    in_rows &= rectangles.is_used[..., None]
    erased = (in_rows[..., :, None] & in_columns[..., None, :]).any(1, keepdim=True)
    return torch.where(erased, colour[..., None, None], image)

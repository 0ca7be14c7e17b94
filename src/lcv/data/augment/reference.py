"""The slow truth: one pair at a time, one step after the other, one pixel after the other.

Images are (3, h, w), flow (2, h, w), valid (1, h, w), on the CPU, in float64 to be a yardstick.
Random numbers are not drawn here: `augment_one` reads its pair's row of a `Plan`.
"""

from __future__ import annotations

import colorsys
import math

import torch
from torch import Tensor

from lcv.data.augment.apply import Plan
from lcv.data.augment.photometric import BRIGHTNESS, CONTRAST, SATURATION
from lcv.data.augment.recipes import Augmentation
from lcv.data.augment.types import Batch


def resize(maps: Tensor, scale_y: float, scale_x: float) -> Tensor:
    """Bilinear, as cv2.resize(fx, fy): (c, h, w) → (c, round(h·scale_y), round(w·scale_x))."""

    def between(lines: Tensor, scale: float) -> Tensor:
        """The same along the first axis alone."""
        last = len(lines) - 1
        made = []
        for pixel in range(round(len(lines) * scale)):
            place = min(max((pixel + 0.5) / scale - 0.5, 0.0), float(last))
            low = math.floor(place)
            weight = place - low
            made.append((1 - weight) * lines[low] + weight * lines[min(low + 1, last)])
        return torch.stack(made)

    rows = between(maps.permute(1, 0, 2), scale_y).permute(1, 0, 2)
    return between(rows.permute(2, 0, 1), scale_x).permute(1, 2, 0)


def scatter(flow: Tensor, valid: Tensor, scale_y: float, scale_x: float) -> tuple[Tensor, Tensor]:
    """Known vectors at the nearest pixel of the resized image, not at row or column 0; the last in
    reading order wins. The vectors themselves are not scaled."""
    _, h, w = flow.shape
    new_h, new_w = round(h * scale_y), round(w * scale_x)
    placed = flow.new_zeros(2, new_h, new_w)
    placed_valid = torch.zeros(1, new_h, new_w, dtype=torch.bool)
    for y in range(h):
        for x in range(w):
            row, column = round(y * scale_y), round(x * scale_x)
            if valid[0, y, x] and 0 < row < new_h and 0 < column < new_w:
                placed[:, row, column] = flow[:, y, x]
                placed_valid[0, row, column] = True
    return placed, placed_valid


def grey(image: Tensor) -> Tensor:
    """(3, h, w) → (h, w)."""
    return 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2]


def turn_hue(image: Tensor, turn: float) -> Tensor:
    """Pixel by pixel to HSV and back."""
    out = torch.empty_like(image)
    for y in range(image.shape[1]):
        for x in range(image.shape[2]):
            hue, saturation, value = colorsys.rgb_to_hsv(*(image[:, y, x] / 255).tolist())
            colour = colorsys.hsv_to_rgb((hue + turn) % 1.0, saturation, value)
            out[:, y, x] = 255 * torch.tensor(colour, dtype=image.dtype)
    return out


def change_colours(image: Tensor, order: list[int], factors: list[float]) -> Tensor:
    """The four changes in their order. For frames changed alike, put one below the other first."""
    for change in order:
        f = factors[change]
        if change == BRIGHTNESS:
            image = f * image
        elif change == CONTRAST:
            image = f * image + (1 - f) * grey(image).mean()
        elif change == SATURATION:
            image = f * image + (1 - f) * grey(image)
        else:
            image = turn_hue(image, f)
        image = image.clamp(0, 255)
    return image


def erase(image: Tensor, rectangles: list[tuple[int, int, int, int]]) -> Tensor:
    """(top, left, height, width) each, in the mean colour of the whole image."""
    colour = image.mean((1, 2), keepdim=True)
    image = image.clone()
    for top, left, height, width in rectangles:
        image[:, top : top + height, left : left + width] = colour
    return image


def augment_one(
    batch: Batch, recipe: Augmentation, plan: Plan, k: int
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Pair k of the batch: image1, image2, flow and valid after everything."""
    height, width = batch.sizes[k]
    image1 = batch.image1[k, :, :height, :width].double()
    image2 = batch.image2[k, :, :height, :width].double()

    if plan.colours is not None:
        order, factor = plan.colours.order[k].tolist(), plan.colours.factor[k].tolist()
        if plan.colours.is_joint[k]:
            both = change_colours(torch.cat((image1, image2), 1), order[0], factor[0])
            image1, image2 = both[:, :height], both[:, height:]
        else:
            image1 = change_colours(image1, order[0], factor[0])
            image2 = change_colours(image2, order[1], factor[1])
    if plan.rectangles is not None:
        r = plan.rectangles
        corners = torch.stack((r.top[k], r.left[k], r.height[k], r.width[k]), 1)
        image2 = erase(image2, [tuple(c) for c in corners[r.is_used[k]].tolist()])
    if plan.swap is not None:
        image1, image2 = image1[plan.swap[k]], image2[plan.swap[k]]

    y, x = plan.placement.y, plan.placement.x
    scale_y, scale_x = float(y.scale[k]), float(x.scale[k])
    is_resized = bool(plan.placement.is_resized[k])

    def flip_and_crop(maps: Tensor) -> Tensor:
        axes = [axis for axis, flips in ((1, y.flip[k]), (2, x.flip[k])) if flips]
        crop_h, crop_w = recipe.geometry.crop
        top, left = int(y.offset[k]), int(x.offset[k])
        return maps.flip(axes)[:, top : top + crop_h, left : left + crop_w]

    if is_resized:
        image1, image2 = resize(image1, scale_y, scale_x), resize(image2, scale_y, scale_x)
    image1, image2 = flip_and_crop(image1), flip_and_crop(image2)
    if batch.flow is None or batch.valid is None:
        return image1, image2, None, None

    valid = batch.valid[k, :, :height, :width] & batch.flow[k, :, :height, :width].isfinite().all(0)
    flow = batch.flow[k, :, :height, :width].double().where(valid, 0.0)
    if is_resized and recipe.sparse:
        flow, valid = scatter(flow, valid, scale_y, scale_x)
    elif is_resized:
        flow = resize(flow, scale_y, scale_x)
        valid = resize((~valid).double(), scale_y, scale_x) == 0
    flow, valid = flip_and_crop(flow), flip_and_crop(valid)
    sign_x, sign_y = (-1.0 if axis.flip[k] else 1.0 for axis in (x, y))
    factors = torch.tensor([sign_x * scale_x, sign_y * scale_y], dtype=flow.dtype)
    flow = flow * factors[:, None, None]
    if recipe.largest_flow is not None:
        valid = valid & (flow.abs() < recipe.largest_flow).all(0)
    return image1, image2, flow.where(valid, 0.0), valid

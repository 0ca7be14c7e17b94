"""Legends: what the colours of a picture mean, to stand beside it."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import numpy as np
from PIL import Image

from lcv.visual.colours import wheel_legend
from lcv.visual.error_maps import KITTI_COLOURS
from lcv.visual.text import INK, PAPER, line_height, text_strip, width_of

# Wheels are drawn this much larger and averaged, so that their rim is smooth.
FINE = 3
BAR_WIDTH = 18
LETTERS = 12
FRAME = (150, 160, 168)
# A longer picture that is lower than its legends goes without them.
LONGEST_BESIDE = 20_000


def readable_scale(scale: float) -> float:
    """The next number of three digits that is not smaller, to be printed, and given again.

    Facts: a fixed point of itself, so that what is printed reproduces the picture bit by bit.
    """
    exact = Decimal(repr(float(scale)))
    step = Decimal(1).scaleb(exact.adjusted() - 2)
    return float((exact / step).to_integral_value(ROUND_CEILING) * step)


def px(value: float) -> str:
    """A length in words: '23.5 px'."""
    return f"{value:.3g} px" if value < 1000 else f"{value:.0f} px"


def wheel_key(scale: float, size: int = 96) -> np.ndarray:
    """The wheel with its scale under it, about (1.5 size, size, 3) uint8.

    The rim is a motion of `scale` pixels in the direction of its place on the wheel.
    """
    big = Image.fromarray(wheel_legend(FINE * size))
    wheel = np.asarray(big.resize((size, size), Image.Resampling.BOX))
    letters = max(11, size // 8)
    words = text_strip(f"{px(scale)}\nat the rim", size, letters)
    return np.concatenate([wheel, np.full((4, size, 3), 255, np.uint8), words])


def kitti_key(height: int = 200) -> np.ndarray:
    """KITTI's ten colours with the errors at which they change, in units of an outlier's."""
    steps = [np.array(colour, np.uint8) for colour in KITTI_COLOURS]
    words = ("1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16")
    crowded = height < 12 * line_height(LETTERS)
    ticks = {k / 10: word for k, word in enumerate(words, start=1) if k % 2 or not crowded}
    return _bar(steps, ticks, height, "1 = outlier:\n3 px and 5 %")


def grey_key(limit: float, height: int = 200, title: str = "error") -> np.ndarray:
    """A ramp from black, 0, to white, `limit` pixels or more."""
    steps = [np.full(3, level, np.uint8) for level in range(256)]
    ticks = {share: f"{share * limit:.3g}" for share in (0.0, 0.5)}
    return _bar(steps, {**ticks, 1.0: f"{limit:.3g}+"}, height, f"{title}, px")


def _bar(steps: list[np.ndarray], ticks: dict[float, str], height: int, title: str) -> np.ndarray:
    """A bar of colours from below to above, its ticks at shares of its height, a title under it."""
    line = line_height(LETTERS)
    margin = line // 2 + 1
    room = max(16, height - 2 * margin - line * (title.count("\n") + 1))
    wide = max(width_of(text, LETTERS) for text in ticks.values())
    width = max(BAR_WIDTH + 8 + wide, width_of(title, LETTERS) + 2)
    page = np.full((room + 2 * margin, width, 3), PAPER, np.uint8)
    page[margin - 1 : margin + room + 1, : BAR_WIDTH + 2] = FRAME
    rows = np.array(steps)[(len(steps) * (np.arange(room)[::-1] + 0.5) / room).astype(int)]
    page[margin : margin + room, 1 : BAR_WIDTH + 1] = rows[:, None]
    for share, text in ticks.items():
        y = margin + round((1 - share) * (room - 1))
        page[y, BAR_WIDTH + 2 : BAR_WIDTH + 5] = INK
        page[y - line // 2 :][:line, BAR_WIDTH + 8 :][:, :wide] = text_strip(
            text, wide, LETTERS, align="left"
        )
    return np.concatenate([page, text_strip(title, width, LETTERS)])


def with_key(picture: np.ndarray, *keys: np.ndarray, gap: int = 12) -> np.ndarray:
    """A picture with its legends to the right of it, one below the other, on white."""
    height = sum(key.shape[0] for key in keys) + gap * (len(keys) - 1)
    width = max(key.shape[1] for key in keys)
    rows, left = picture.shape[:2]
    if (left > LONGEST_BESIDE and rows < height) or (rows > LONGEST_BESIDE and left < width):
        return picture  # the page would be mostly empty
    page = np.full((max(picture.shape[0], height), left + width + 2 * gap, 3), 255, np.uint8)
    page[: picture.shape[0], :left] = picture
    top = (page.shape[0] - height) // 2
    for key in keys:
        page[top : top + key.shape[0], left + gap : left + gap + key.shape[1]] = key
        top += key.shape[0] + gap
    return page


def key_cell(height: int, width: int, *keys: np.ndarray) -> np.ndarray:
    """Legends in the middle of a cell of a figure, side by side; smaller where they do not fit."""
    gap = 18
    page = np.full((max(key.shape[0] for key in keys), gap, 3), 255, np.uint8)
    for key in keys:
        padded = np.full((page.shape[0], key.shape[1] + gap, 3), 255, np.uint8)
        top = (page.shape[0] - key.shape[0]) // 2
        padded[top : top + key.shape[0], : key.shape[1]] = key
        page = np.concatenate([page, padded], axis=1)
    shrink = min(1.0, height / page.shape[0], width / page.shape[1])
    size = max(1, int(shrink * page.shape[1])), max(1, int(shrink * page.shape[0]))
    fitted = np.asarray(Image.fromarray(page).resize(size, Image.Resampling.LANCZOS))
    cell = np.full((height, width, 3), 255, np.uint8)
    y, x = (height - size[1]) // 2, (width - size[0]) // 2
    cell[y : y + size[1], x : x + size[0]] = fitted
    return cell

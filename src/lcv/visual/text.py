"""Words on pictures, in the one font that comes with Pillow, so that no font file is needed."""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
from PIL import Image, ImageDraw, ImageFont

INK = (34, 48, 60)
PAPER = (255, 255, 255)
SMALLEST = 9
# Drawn this much larger and averaged: small letters would be set on whole pixels, too near or far.
FINE = 4
# The font has the letters of English and little more; these stand for what labels often hold.
SPELLED = {"–": "-", "−": "-", "—": "-", "×": "x", "→": "->", "λ": "lambda", "²": "2", "ᵀ": "'"}


@functools.lru_cache(maxsize=32)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font at a height of `size` pixels."""
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=4096)
def _has(letter: str) -> bool:
    face = font(24)
    missing, found = face.getmask("\uffff"), face.getmask(letter)
    return letter == " " or (bytes(found), found.size) != (bytes(missing), missing.size)


def drawable(text: str) -> str:
    """The text in letters that the font has; what it lacks loses its accent or becomes '?'."""
    letters = []
    for letter in text:
        spelled = SPELLED.get(letter, letter)
        if letter != "\n" and not all(map(_has, spelled)):
            bare = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
            spelled = bare or "?"
        letters.append(spelled)
    return "".join(letters)


def width_of(text: str, size: int) -> int:
    """How wide the widest line of a text is, in pixels."""
    face = font(FINE * size)
    lengths = (face.getlength(line) / FINE for line in drawable(text).split("\n"))
    return int(np.ceil(max(lengths)))


def line_height(size: int) -> int:
    """From one line to the next, in pixels: enough for every letter with its tail."""
    return int(np.ceil(1.45 * size))


def fitting(text: str, size: int, width: int) -> tuple[str, int]:
    """The text and a size at which it is no wider than `width`.

    It gets smaller as long as it can be read, and then loses its end.
    """
    text = drawable(text)
    while size > SMALLEST and width_of(text, size) > width:
        size -= 1
    return "\n".join(_shortened(line, size, width) for line in text.split("\n")), size


def _shortened(line: str, size: int, width: int) -> str:
    if width_of(line, size) <= width:
        return line
    while line and width_of(line + "…", size) > width:
        line = line[:-1]
    return line + "…"


@functools.lru_cache(maxsize=64)
def text_strip(
    text: str,
    width: int,
    size: int,
    lines: int | None = None,
    align: str = "middle",
) -> np.ndarray:
    """A text in a strip, (lines · line height, width, 3) uint8, dark on white.

    lines: as many as the text has if not given;  align: "middle" or "left"
    """
    count = text.count("\n") + 1 if lines is None else lines
    height = max(1, count * line_height(size))
    strip = Image.new("RGB", (FINE * width, FINE * height), PAPER)
    shown, fitted = fitting(text, size, max(1, width - 2))
    pen = ImageDraw.Draw(strip)
    for number, line in enumerate(shown.split("\n")):
        place = (strip.width / 2 if align == "middle" else 0, (number + 0.5) * line_height(size))
        anchor = "mm" if align == "middle" else "lm"
        pen.text((place[0], FINE * place[1]), line, INK, font(FINE * fitted), anchor)
    return np.asarray(strip.resize((width, height), Image.Resampling.BOX))

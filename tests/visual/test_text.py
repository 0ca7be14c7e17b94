"""Words on pictures: how large, how wide, and where in their strip."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import ImageDraw

from lcv.visual.text import INK, drawable, fitting, font, line_height, text_strip, width_of


@pytest.mark.parametrize(("size", "height"), [(9, 14), (12, 18), (20, 29), (26, 38)])
def test_the_height_of_a_line(size, height):
    assert line_height(size) == height


def test_a_text_is_as_wide_as_its_widest_line():
    assert (
        width_of("a\nabc", 20) == width_of("abc", 20) == int(np.ceil(font(80).getlength("abc") / 4))
    )


def test_what_the_font_lacks():
    spelled = {"–": "-", "−": "-", "—": "-", "×": "x", "→": "->", "λ": "lambda", "²": "2", "ᵀ": "'"}
    for letter, wanted in spelled.items():
        assert drawable(letter) == wanted
    assert drawable("ǆ 流 a b") == "dz ? a b"


def test_a_text_shrinks_to_nine_pixels_and_then_loses_its_end():
    width = width_of("wide words", 9)
    assert fitting("wide words", 20, width_of("wide words", 20)) == ("wide words", 20)
    assert fitting("wide words", 20, width_of("wide words", 20) - 1)[1] == 19
    assert fitting("wide words", 20, width) == ("wide words", 9)
    shown, size = fitting("wide words", 20, width - 1)
    assert size == 9
    assert shown.endswith("…")
    assert shown[:-1] == "wide words"[: len(shown) - 1]
    assert width_of("wide words"[: len(shown)] + "…", 9) > width - 1 >= width_of(shown, 9)
    assert fitting("wide words", 9, 0) == ("…", 9)
    assert fitting("wide words\na", 9, width - 1)[0] == f"{shown}\na"


def test_where_the_lines_of_a_strip_are_written(monkeypatch):
    """Four times as large, then reduced: the middle of line k is at (k + ½) line heights."""
    written = []
    monkeypatch.setattr(
        ImageDraw.ImageDraw,
        "text",
        lambda _, place, words, ink, face, anchor: written.append(
            (place, words, ink, face.size, anchor)
        ),
    )
    text_strip.cache_clear()
    middle, left = text_strip("a\nb", 50, 20), text_strip("c", 50, 20, 3, "left")
    text_strip("wide words", 32, 20)
    text_strip.cache_clear()
    assert middle.shape == (58, 50, 3)
    assert left.shape == (87, 50, 3)
    assert (middle == 255).all()
    assert written[:3] == [
        ((100, 58), "a", INK, 80, "mm"),
        ((100, 174), "b", INK, 80, "mm"),
        ((0, 58), "c", INK, 80, "lm"),
    ]
    # Two pixels of the width stay free.
    shown, size = fitting("wide words", 20, 30)
    assert written[3] == ((64, 58), shown, INK, 4 * size, "mm")
    assert text_strip("", 0 + 1, 20, 0).shape == (1, 1, 3)

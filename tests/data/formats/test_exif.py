"""All eight orientations against Pillow's, and blocks that are damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from PIL import Image, ImageOps

from data.formats.samples import some_rgb
from lcv.data.formats.exif import orientation, upright


def block(value, order=">", tag=0x0112, kind=3, count=1):
    start = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 8)
    other = struct.pack(order + "HHII", 0x0100, 4, 1, 99)
    entry = struct.pack(order + "HHIHH", tag, kind, count, value, 0)
    return start + struct.pack(order + "H", 2) + other + entry + bytes(4)


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("order", "<>")
def test_every_orientation_as_pillow_has_it(value, order):
    rgb = some_rgb(5, 7)
    picture = Image.fromarray(rgb)
    picture.getexif()[0x0112] = value
    assert orientation(block(value, order)) == value
    assert orientation(picture.getexif().tobytes().removeprefix(b"Exif\0\0")) == value
    assert np.array_equal(upright(rgb, value), np.array(ImageOps.exif_transpose(picture)))


@pytest.mark.parametrize(
    "damaged",
    [b"", b"hello, world", block(0), block(9), block(6, tag=0x0113), block(6, kind=4)]
    + [block(6)[:length] for length in range(34)]
    + [block(6)[:4] + b"\xff\xff\xff\xff" + block(6)[8:]],
)
def test_a_damaged_block_says_upright(damaged):
    assert orientation(damaged) == 1

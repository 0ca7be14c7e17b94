"""PPM and PGM by hand, of eight and sixteen bits."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import some_rgb
from lcv.data.formats.image import read_image
from lcv.errors import FileError


def read(tmp_path, content):
    (tmp_path / "a.ppm").write_bytes(content)
    return read_image(tmp_path / "a.ppm")


def test_by_hand(tmp_path):
    assert read(tmp_path, b"P6\n# by\n# hand\n1 2 # so\n255\nabcdef").tolist() == [
        [[97, 98, 99]],
        [[100, 101, 102]],
    ]
    assert read(tmp_path, b"P5 2 1 255\nab").tolist() == [[[97] * 3, [98] * 3]]


def test_as_pillow_writes_it(tmp_path):
    rgb = some_rgb(5, 7)
    memory = io.BytesIO()
    Image.fromarray(rgb).save(memory, "PPM")
    assert np.array_equal(read(tmp_path, memory.getvalue()), rgb)


@pytest.mark.parametrize("largest", [1, 3, 100, 255, 256, 1023, 4095, 65535])
def test_values_are_scaled_not_clipped(tmp_path, largest):
    values = np.unique(np.linspace(0, largest, 300).astype(int))
    body = values.astype(np.uint8 if largest < 256 else ">u2").tobytes()
    image = read(tmp_path, b"P5 %d 1 %d\n" % (len(values), largest) + body)
    wanted = [(510 * int(v) + largest) // (2 * largest) for v in values]
    assert image[0, :, 0].tolist() == wanted
    assert (wanted[0], wanted[-1]) == (0, 255)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"P6\n1 2\n", "its PPM header is damaged"),
        (b"P6\n1 -2\n255\n", "its PPM header is damaged"),
        (b"P6\n0 2\n255\n", "declares 0×2 pixels"),
        (b"P6\n1 2\n0\nabcdef", "its largest value is 0, wanted 1 to 65535"),
        (b"P6\n1 2\n65536\nabcdef", "its largest value is 65536"),
        (b"P6\n1 2\n255\nabcde", "too few, wanted 17 for 1×2×3 samples"),
        (b"P6\n1 2\n255\nabcdefg", "too many, wanted 17 for 1×2×3 samples"),
        (b"P5\n1 2\n99\nab\n"[:-1].replace(b"ab", b"az"), "holds values above the 99"),
        (b"P6\n30000 30000\n255\n", "declares 30000×30000 pixels, more than"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    with pytest.raises(FileError, match=message):
        read(tmp_path, content)

"""Masks keep the values that the file stores."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import png_chunk, png_file, some_rgb
from lcv.data.formats.mask import read_mask, write_mask
from lcv.errors import FileError


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("colour", [0, 3], ids=["grey", "palette"])
def test_samples_and_indices_are_given_as_stored(tmp_path, depth, colour):
    values = np.arange(16).reshape(2, 8) % 2**depth
    bits = (values[:, :, None] >> np.arange(depth)[::-1]) & 1
    rows = b"".join(b"\0" + np.packbits(line).tobytes() for line in bits.reshape(2, -1))
    palette = png_chunk(b"PLTE", some_rgb(1, 2**depth).tobytes()) if colour == 3 else b""
    (tmp_path / "a.png").write_bytes(png_file(8, 2, depth, colour, rows, before=palette))
    mask = read_mask(tmp_path / "a.png")
    assert mask.dtype == np.uint8
    assert np.array_equal(mask, values)


def test_colour_is_a_mask_only_where_it_is_grey(tmp_path):
    grey = some_rgb(5, 7)[:, :, :1]
    Image.fromarray(np.repeat(grey, 3, axis=2)).save(tmp_path / "a.png")
    assert np.array_equal(read_mask(tmp_path / "a.png"), grey[:, :, 0])
    Image.fromarray(some_rgb(5, 7)).save(tmp_path / "b.png")
    with pytest.raises(FileError, match="is a 8-bit RGB PNG with colours, wanted a mask"):
        read_mask(tmp_path / "b.png")


def test_sixteen_bits_and_other_kinds_are_refused(tmp_path):
    Image.fromarray(np.zeros((2, 3), np.uint16)).save(tmp_path / "a.png")
    with pytest.raises(FileError, match="is a 16-bit grey PNG, wanted a mask of at most eight"):
        read_mask(tmp_path / "a.png")
    Image.fromarray(some_rgb()).save(tmp_path / "a.jpg")
    with pytest.raises(FileError, match=r"a\.jpg: not a PNG .* a mask must be one"):
        read_mask(tmp_path / "a.jpg")
    with pytest.raises(FileError, match="there is no such file"):
        read_mask(tmp_path / "none.png")


def test_what_is_written_is_read(tmp_path):
    mask = some_rgb(5, 7)[:, :, 0]
    write_mask(tmp_path / "a.png", mask)
    assert np.array_equal(read_mask(tmp_path / "a.png"), mask)
    write_mask(tmp_path / "b.png", mask > 99)
    assert np.array_equal(read_mask(tmp_path / "b.png"), np.where(mask > 99, 255, 0))
    with pytest.raises(FileError, match="exists already"):
        write_mask(tmp_path / "a.png", mask)


@pytest.mark.parametrize(
    ("name", "mask", "message"),
    [
        ("a.png", np.zeros((2, 3)), "a mask of float64, wanted a uint8 or bool array"),
        ("a.png", np.zeros((2, 3, 1), np.uint8), r"shape \(2, 3, 1\), wanted \(H, W\)"),
        ("a.jpg", np.zeros((2, 3), np.uint8), "a mask is written as .png, not '.jpg'"),
    ],
)
def test_what_is_no_mask_is_not_written(tmp_path, name, mask, message):
    with pytest.raises(FileError, match=message):
        write_mask(tmp_path / name, mask)
    assert list(tmp_path.iterdir()) == []

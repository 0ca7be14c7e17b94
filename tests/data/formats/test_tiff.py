"""A TIFF is held against its length before Pillow sees it, and Pillow's warnings are not passed on."""

from __future__ import annotations

import io
import struct
import warnings

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import some_rgb
from lcv.data.formats.image import read_image
from lcv.data.formats.tiff import check_tile
from lcv.errors import FileError


def tiff(*entries, order="<", following=0):
    """16×16 grey pixels from byte 8 on, with these tags (tag, type, count, value) besides."""
    plain = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 279: 256}
    every = sorted([*((tag, 4, 1, value) for tag, value in plain.items()), *entries])
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 264)
    tags = b"".join(struct.pack(order + "HHII", *entry) for entry in every)
    count = struct.pack(order + "H", len(every))
    return head + bytes(range(256)) + count + tags + struct.pack(order + "I", following)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("following", [0, 264], ids=["the last", "its own successor"])
def test_a_plain_one_is_read(tmp_path, order, following):
    (tmp_path / "a").write_bytes(tiff(order=order, following=following))
    wanted = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert np.array_equal(read_image(tmp_path / "a")[..., 0], wanted)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((999, 1, 100, 300), "damaged TIFF: what its tag 999 points to lies outside its"),
        ((34665, 4, 1, 4000), "damaged TIFF: its list of tags at byte 4000 is empty or lies"),
        ((34665, 16, 1, 8), "damaged TIFF: its tag 34665 is not a whole number"),
        ((322, 5, 1, 8), "damaged TIFF: its tag 322 is not a whole number"),
    ],
)
def test_damage_is_said_without_a_warning(tmp_path, order, entry, message):
    (tmp_path / "a").write_bytes(tiff(entry, order=order))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(FileError, match=f"a: {message}"):
            read_image(tmp_path / "a")
    assert not caught


def test_odd_tags_are_read_without_a_warning(tmp_path):
    # Pillow warns of two numbers where one belongs.
    (tmp_path / "a").write_bytes(tiff((274, 3, 2, 1)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read_image(tmp_path / "a").shape == (16, 16, 3)
    assert not caught


def test_tags_that_share_their_bytes_many_times_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(tiff(*((tag, 1, 200, 8) for tag in range(999, 1009))))
    with pytest.raises(FileError, match="damaged TIFF: what its tag"):
        read_image(tmp_path / "a")


def test_a_second_picture_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(tiff(following=9))
    with pytest.raises(FileError, match="holds more than one picture, wanted one"):
        read_image(tmp_path / "a")


def test_a_tile_may_be_somewhat_larger_than_the_picture(tmp_path):
    check_tile(tmp_path, 2**22, 16, 16)
    check_tile(tmp_path, 4 * 4000 * 4000, 4000, 4000)
    for tile, side in ((2**22 + 1, 16), (4 * 4000 * 4000 + 1, 4000)):
        with pytest.raises(FileError, match=f"is {side}×{side} pixels in tiles of {tile}, wanted"):
            check_tile(tmp_path, tile, side, side)


def test_pillows_own_are_read_with_exif(tmp_path):
    exif = Image.Exif()
    exif[271] = "a camera of some name"
    exif.get_ifd(34665)[37510] = b"a comment of some length"
    exif.get_ifd(34853)[29] = "2020:01:01"
    rgb = some_rgb(20, 30)
    Image.fromarray(rgb).save(memory := io.BytesIO(), "TIFF", exif=exif, dpi=(72, 72))
    (tmp_path / "a").write_bytes(memory.getvalue())
    assert np.array_equal(read_image(tmp_path / "a"), rgb)

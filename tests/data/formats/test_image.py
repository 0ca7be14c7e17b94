"""Pictures of every common kind come out as RGB in eight bits; the rest is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import lcv
from lcv.errors import FileError


@pytest.fixture
def rgb():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def test_colour_comes_back_exactly(tmp_path, rgb):
    Image.fromarray(rgb).save(tmp_path / "a.png")
    read = lcv.read_image(tmp_path / "a.png")
    assert read.dtype == np.uint8
    assert np.array_equal(read, rgb)
    assert np.array_equal(lcv.read_image(str(tmp_path / "a.png")), rgb)


def test_grey_palette_and_alpha_become_rgb(tmp_path, rgb):
    Image.fromarray(rgb[:, :, 0]).save(tmp_path / "grey.png")
    assert np.array_equal(lcv.read_image(tmp_path / "grey.png"), rgb[:, :, [0, 0, 0]])
    Image.fromarray(np.dstack([rgb, rgb[:, :, :1]])).save(tmp_path / "alpha.png")
    assert np.array_equal(lcv.read_image(tmp_path / "alpha.png"), rgb)
    Image.fromarray(rgb).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "palette.png")
    assert lcv.read_image(tmp_path / "palette.png").shape == (5, 7, 3)


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    grey = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    Image.fromarray(grey).save(tmp_path / "deep.png")
    assert lcv.read_image(tmp_path / "deep.png")[0, :, 1].tolist() == [0, 1, 128, 255]


def test_a_rotation_in_exif_is_carried_out(tmp_path, rgb):
    picture = Image.fromarray(rgb)
    exif = picture.getexif()
    exif[0x0112] = 6  # turn by a quarter to the right to stand upright
    picture.save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(lcv.read_image(tmp_path / "turned.png"), np.rot90(rgb, -1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.png", b"", r"empty\.png: not an image that can be read \(0 bytes\)"),
        ("text.png", b"hello, world", r"text\.png: not an image that can be read \(12 bytes\)"),
        ("signature.png", b"\x89PNG\r\n\x1a\n", r"signature\.png: "),
    ],
)
def test_what_is_no_image_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message):
        lcv.read_image(tmp_path / name)


def test_a_cut_file_a_missing_file_and_a_folder_are_refused_by_name(tmp_path, rgb):
    Image.fromarray(np.tile(rgb, (40, 40, 1))).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"cut\.png: damaged or not readable"):
        lcv.read_image(tmp_path / "cut.png")
    with pytest.raises(FileError, match=r"none\.png: there is no such file"):
        lcv.read_image(tmp_path / "none.png")
    with pytest.raises(FileError, match="this is a folder, wanted an image file"):
        lcv.read_image(tmp_path)

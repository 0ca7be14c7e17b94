"""TIFF and AVIF come out as RGB in eight bits; what cannot be read says which package to install."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image, features

import lcv
from data.formats.samples import some_rgb
from lcv.errors import FileError

needs_avif = pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    image.save(memory := io.BytesIO(), kind, **options)
    return memory.getvalue()


@pytest.mark.parametrize("packing", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_a_tiff_comes_back_exactly(tmp_path, packing):
    rgb = some_rgb(5, 7)
    (tmp_path / "a.tif").write_bytes(encoded(Image.fromarray(rgb), "TIFF", compression=packing))
    assert np.array_equal(lcv.read_image(tmp_path / "a.tif"), rgb)


def test_sixteen_bits_of_grey_are_scaled(tmp_path):
    deep = np.arange(0, 65536, 97, dtype=np.uint16)[:660].reshape(22, 30)
    (tmp_path / "a.tiff").write_bytes(encoded(Image.fromarray(deep), "TIFF"))
    read = lcv.read_image(tmp_path / "a.tiff")
    assert np.array_equal(read, np.repeat(np.rint(deep / 257)[..., None], 3, axis=2))


def test_a_tiff_is_turned_as_it_says(tmp_path):
    rgb = some_rgb(5, 7)
    (tmp_path / "a.tif").write_bytes(encoded(Image.fromarray(rgb), "TIFF", tiffinfo={274: 6}))
    assert np.array_equal(lcv.read_image(tmp_path / "a.tif"), np.rot90(rgb, -1))


@needs_avif
def test_an_avif_comes_near(tmp_path):
    rgb = np.full((16, 24, 3), (200, 90, 30), np.uint8)
    (tmp_path / "a.avif").write_bytes(encoded(Image.fromarray(rgb), "AVIF", quality=95))
    assert np.abs(lcv.read_image(tmp_path / "a.avif").astype(int) - rgb).max() < 8


@pytest.mark.parametrize("kind", ["TIFF", pytest.param("AVIF", marks=needs_avif)])
def test_a_cut_file_is_refused(tmp_path, kind):
    content = encoded(Image.fromarray(some_rgb(40, 60)), kind)
    for length in (20, len(content) // 2, len(content) - 1):
        (tmp_path / "a").write_bytes(content[:length])
        with pytest.raises(FileError, match=f"a: damaged {kind}"):
            lcv.read_image(tmp_path / "a")


def test_pictures_that_are_not_one_frame_are_refused(tmp_path):
    page = Image.fromarray(some_rgb(5, 7))
    (tmp_path / "a").write_bytes(encoded(page, "TIFF", save_all=True, append_images=[page]))
    with pytest.raises(FileError, match="holds more than one picture, wanted one"):
        lcv.read_image(tmp_path / "a")
    (tmp_path / "b").write_bytes(encoded(Image.new("F", (5, 7)), "TIFF"))
    with pytest.raises(FileError, match="has pixels of 32 bits"):
        lcv.read_image(tmp_path / "b")


def test_more_pixels_than_allowed_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(encoded(Image.fromarray(some_rgb(5, 7)), "TIFF"))
    with pytest.raises(FileError, match="declares 7×5 pixels, more than"):
        lcv.read_image(tmp_path / "a", max_pixels=34)


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    if features.check("avif"):
        monkeypatch.setattr("PIL.AvifImagePlugin.SUPPORTED", False)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    for kind, package in (("avif", "'pillow>=11.3'"), ("heic", "pillow-heif")):
        (tmp_path / "a").write_bytes(b"\0\0\0\x20ftyp" + kind.encode() + bytes(100))
        with pytest.raises(FileError, match=f"a: is {kind.upper()}, .* pip install {package}"):
            lcv.read_image(tmp_path / "a")


def test_a_heic_is_read_where_the_package_is_there(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    rgb = np.full((64, 96, 3), (200, 90, 30), np.uint8)
    heif.from_pillow(Image.fromarray(rgb)).save(tmp_path / "a.heic", quality=95)
    assert np.abs(lcv.read_image(tmp_path / "a.heic").astype(int) - rgb).max() < 12

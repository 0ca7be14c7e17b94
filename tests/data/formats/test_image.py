"""Pictures of every common kind come out as RGB in eight bits; the rest is refused by name."""

from __future__ import annotations

import io
import struct
import zlib
from fractions import Fraction

import av
import numpy as np
import pytest
from PIL import Image, ImageOps, PngImagePlugin

import lcv
from data.formats.samples import png_chunk, png_file, some_rgb
from lcv.data.formats.image import write_image
from lcv.data.formats.mask import read_mask
from lcv.data.layouts import IMAGE_SUFFIXES
from lcv.errors import FileError


@pytest.fixture
def rgb():
    return some_rgb(5, 7)


def test_colour_comes_back_exactly(tmp_path, rgb):
    Image.fromarray(rgb).save(tmp_path / "a.png")
    read = lcv.read_image(tmp_path / "a.png")
    assert read.dtype == np.uint8
    assert np.array_equal(read, rgb)
    assert np.array_equal(lcv.read_image(str(tmp_path / "a.png")), rgb)


@pytest.mark.parametrize(("suffix", "options"), [("bmp", {}), ("webp", {"lossless": True})])
def test_other_kinds_come_back_exactly_whatever_their_name(tmp_path, rgb, suffix, options):
    for mode in ("RGB", "L", "RGBA"):
        Image.fromarray(rgb).convert(mode).save(tmp_path / f"a.{suffix}", **options)
        (tmp_path / f"a.{suffix}").rename(tmp_path / "a.picture")
        truth = np.array(Image.fromarray(rgb).convert(mode).convert("RGB"))
        assert np.array_equal(lcv.read_image(tmp_path / "a.picture"), truth)


def test_grey_and_alpha_become_rgb(tmp_path, rgb):
    Image.fromarray(rgb[:, :, 0]).save(tmp_path / "grey.png")
    assert np.array_equal(lcv.read_image(tmp_path / "grey.png"), rgb[:, :, [0, 0, 0]])
    Image.fromarray(np.dstack([rgb, rgb[:, :, :1]])).save(tmp_path / "alpha.png")
    assert np.array_equal(lcv.read_image(tmp_path / "alpha.png"), rgb)
    Image.fromarray(np.ascontiguousarray(rgb[:, :, :2]), "LA").save(tmp_path / "both.png")
    assert np.array_equal(lcv.read_image(tmp_path / "both.png"), rgb[:, :, [0, 0, 0]])


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_a_palette_is_looked_up(tmp_path, depth):
    colours = some_rgb(1, 2**depth)[0]
    palette = png_chunk(b"PLTE", colours.tobytes())
    transparent = png_chunk(b"tRNS", bytes(2**depth))
    index = np.arange(16).reshape(2, 8) % 2**depth
    bits = (index[:, :, None] >> np.arange(depth)[::-1]) & 1
    rows = b"".join(b"\0" + np.packbits(line).tobytes() for line in bits.reshape(2, -1))
    content = png_file(8, 2, depth, 3, rows, before=palette + transparent)
    (tmp_path / "a.png").write_bytes(content)
    assert np.array_equal(lcv.read_image(tmp_path / "a.png"), colours[index])


@pytest.mark.parametrize(("depth", "largest"), [(1, 1), (2, 3), (4, 15)])
def test_few_bits_are_stretched(tmp_path, depth, largest):
    rows = bytes([0, 0b00011011, 0])
    (tmp_path / "a.png").write_bytes(png_file(16 // depth, 1, depth, 0, rows))
    samples = np.unpackbits(np.frombuffer(rows[1:], np.uint8)).reshape(-1, depth)
    values = samples @ (1 << np.arange(depth)[::-1])
    read = lcv.read_image(tmp_path / "a.png")
    assert read[0, :, 2].tolist() == (values * 255 // largest).tolist()


DEEP = np.array([0, 1, 128, 129, 256, 257, 385, 386, 32896, 65279, 65406, 65407, 65535])


@pytest.mark.parametrize(
    ("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)], ids=["grey", "rgb", "ga", "rgba"]
)
@pytest.mark.parametrize("interlaced", [False, True])
def test_sixteen_bits_are_scaled_not_clipped_nor_halved(tmp_path, colour, channels, interlaced):
    width = len(DEEP)
    samples = np.stack([np.roll(DEEP, c) for c in range(channels)], axis=1)  # (W, channels)
    if interlaced:
        # Adam7 of a single row: passes 1, 2, 4 and 6 hold its columns.
        columns = [slice(0, None, 8), slice(4, None, 8), slice(2, None, 4), slice(1, None, 2)]
        rows = b"".join(b"\0" + samples[c].astype(">u2").tobytes() for c in columns)
    else:
        rows = b"\0" + samples.astype(">u2").tobytes()
    content = png_file(width, 1, 16, colour, rows, interlaced=int(interlaced))
    (tmp_path / "a.png").write_bytes(content)
    wanted = np.rint(samples / 257).astype(int)
    wanted = wanted[:, :3] if channels >= 3 else wanted[:, [0, 0, 0]]
    assert lcv.read_image(tmp_path / "a.png")[0].tolist() == wanted.tolist()


def test_a_deep_picture_of_ffmpeg_is_scaled(tmp_path):
    deep = np.random.default_rng(0).integers(0, 65536, (5, 7, 3), dtype=np.uint16)
    encoder = av.CodecContext.create("png", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 7, 5, "rgb48be"
    encoder.time_base = Fraction(1)
    frame = av.VideoFrame.from_ndarray(deep, "rgb48be")
    content = b"".join(bytes(p) for p in [*encoder.encode(frame), *encoder.encode(None)])
    (tmp_path / "a.png").write_bytes(content)
    assert np.array_equal(lcv.read_image(tmp_path / "a.png"), np.rint(deep / 257))


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
def test_a_rotation_in_exif_is_carried_out(tmp_path, rgb, kind, value):
    picture = Image.fromarray(np.repeat(np.repeat(rgb, 8, 0), 8, 1))
    exif = picture.getexif()
    exif[0x0112] = value
    path = tmp_path / f"turned.{kind}"
    picture.save(path, exif=exif, **({"lossless": True} if kind == "webp" else {}))
    truth = np.array(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    assert truth.shape == ((40, 56, 3) if value < 5 else (56, 40, 3))
    assert np.array_equal(lcv.read_image(path), truth)


def test_a_quarter_to_the_right_by_hand(tmp_path, rgb):
    picture = Image.fromarray(rgb)
    exif = picture.getexif()
    exif[0x0112] = 6  # turn by a quarter to the right to stand upright
    picture.save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(lcv.read_image(tmp_path / "turned.png"), np.rot90(rgb, -1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.png", b"", r"empty\.png: not an image that can be read \(0 bytes\); wanted PNG"),
        ("text.png", b"hello, world", r"text\.png: not an image that can be read \(12 bytes\)"),
        ("film.gif", b"GIF89a", r"film\.gif: not an image .* convert other kinds to PNG"),
        ("signature.png", b"\x89PNG\r\n\x1a\n", "it ends after its signature"),
        ("vast.png", png_file(30000, 30000, 8, 2, b""), "declares 30000×30000 pixels, more than"),
        ("hollow.png", png_file(16000, 16000, 8, 2, bytes(99)), "claim to unpack to 768"),
        ("cut.webp", b"RIFF\x00\x01\x00\x00WEBPVP8 " + bytes(30), "cut WebP"),
        ("cut.bmp", b"BM", "cut BMP: it ends inside its header, after 2 bytes"),
    ],
)
def test_what_is_no_image_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        lcv.read_image(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path):
    with pytest.raises(FileError, match=r"none\.png: there is no such file"):
        lcv.read_image(tmp_path / "none.png")
    with pytest.raises(FileError, match="this is a folder, wanted an image file"):
        lcv.read_image(tmp_path)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "PPM"])
def test_every_cut_is_refused(tmp_path, rgb, kind):
    memory = io.BytesIO()
    Image.fromarray(rgb).save(memory, kind)
    whole, path = memory.getvalue(), tmp_path / "cut.png"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            lcv.read_image(path)


def test_missing_rows_are_refused_where_pillow_leaves_them_black(tmp_path):
    rows = b"".join(b"\0" + line.tobytes() for line in some_rgb(5, 7))
    (tmp_path / "a.png").write_bytes(png_file(7, 5, 8, 2, rows[: 3 * 22]))
    with pytest.raises(FileError, match="holds 66 of the 110 bytes that 5 rows need"):
        lcv.read_image(tmp_path / "a.png")
    whole = png_file(7, 5, 8, 2, rows)
    (tmp_path / "a.png").write_bytes(whole)
    assert np.array_equal(lcv.read_image(tmp_path / "a.png"), some_rgb(5, 7))
    at = whole.index(b"IDAT") + 4
    packed = zlib.compress(rows)
    wrong = packed[:-1] + bytes([packed[-1] ^ 1])
    (tmp_path / "a.png").write_bytes(whole[: at - 8] + png_chunk(b"IDAT", wrong) + whole[-12:])
    with pytest.raises(FileError, match="image data does not inflate .*incorrect data check"):
        lcv.read_image(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "PPM"])
def test_the_limit_of_pixels_is_an_argument(tmp_path, rgb, kind):
    Image.fromarray(rgb).save(tmp_path / "a", kind)
    assert lcv.read_image(tmp_path / "a", max_pixels=35).shape == (5, 7, 3)
    with pytest.raises(FileError, match="declares 7×5 pixels, more than the 34 that are allowed"):
        lcv.read_image(tmp_path / "a", max_pixels=34)


@pytest.mark.parametrize("suffix", [".png", ".ppm", ".jpg", ".JPEG"])
def test_what_is_written_is_read(tmp_path, suffix):
    smooth = np.tile(np.arange(48, dtype=np.uint8)[:, None, None] * 5, (1, 64, 3))
    path = tmp_path / f"50%03d{suffix}"
    write_image(path, smooth[::-1, ::2])
    read = lcv.read_image(path)
    if suffix in (".png", ".ppm"):
        assert np.array_equal(read, smooth[::-1, ::2])
    else:
        assert np.array_equal(read, np.array(Image.open(path)))
        assert np.abs(read.astype(int) - smooth[::-1, ::2]).mean() < 2
    with pytest.raises(FileError, match="exists already"):
        write_image(path, smooth)
    write_image(path, smooth, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "image", "message"),
    [
        ("a.png", np.zeros((2, 3), np.uint8), r"shape \(2, 3\), wanted \(H, W, 3\) RGB"),
        ("a.png", np.zeros((3, 2, 4), np.uint8), r"shape \(3, 2, 4\)"),
        ("a.png", np.zeros((0, 2, 3), np.uint8), r"shape \(0, 2, 3\)"),
        ("a.png", np.zeros((2, 3, 3)), "an image of float64, wanted a uint8 array"),
        ("a.png", [1], "an image of list, wanted a uint8 array"),
        ("a.tiff", np.zeros((2, 2, 3), np.uint8), "ending '.tiff', wanted .png, .ppm or .jpg"),
    ],
)
def test_what_is_no_image_is_not_written(tmp_path, name, image, message):
    with pytest.raises(FileError, match=message):
        write_image(tmp_path / name, image)
    assert list(tmp_path.iterdir()) == []


def test_every_suffix_that_is_looked_for_can_be_read(tmp_path):
    assert {".avif", ".heic"} < IMAGE_SUFFIXES
    for suffix in IMAGE_SUFFIXES - {".avif", ".heic"}:  # which not every Pillow reads
        path = tmp_path / f"a{suffix}"
        mode = "L" if suffix == ".pgm" else "RGB"
        Image.new(mode, (7, 5)).save(path)
        assert lcv.read_image(path).shape == (5, 7, 3)


@pytest.mark.parametrize("kind", ["png", "bmp"])
def test_a_colour_outside_the_palette_is_refused(tmp_path, kind):
    picture = Image.fromarray(np.arange(10, dtype=np.uint8).reshape(2, 5), "P")
    for colours in (10, 9):
        picture.putpalette(list(range(3 * colours)))
        if kind == "png":
            palette = png_chunk(b"PLTE", bytes(range(3 * colours)))
            rows = b"".join(b"\0" + bytes(row) for row in np.asarray(picture).tolist())
            (tmp_path / "a.png").write_bytes(png_file(5, 2, 8, 3, rows, before=palette))
        else:
            picture.save(tmp_path / "a.bmp")
        if colours == 10:
            assert lcv.read_image(tmp_path / f"a.{kind}").shape == (2, 5, 3)
    with pytest.raises(FileError, match="a pixel has colour 9 of a palette of 9"):
        lcv.read_image(tmp_path / f"a.{kind}")
    if kind == "png":
        with pytest.raises(FileError, match="a pixel has colour 9 of a palette of 9"):
            read_mask(tmp_path / "a.png")


@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize(
    "palette", [[0, 255], [255, 0], [0, 1, 2], [*range(16)], [*range(0, 256, 17)]]
)
@pytest.mark.parametrize("upside_down", [False, True])
def test_a_bmp_of_greys_is_looked_up_in_its_palette(tmp_path, bits, palette, upside_down):
    """Pillow reads some of these as bits, or as greys without a palette."""
    palette = palette[: 2**bits]
    indices = np.arange(3 * 7).reshape(3, 7) % len(palette)
    path = tmp_path / "a.bmp"

    def write(indices):
        wide = np.unpackbits(indices.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - bits :]
        rows = np.packbits(wide.reshape(3, -1), axis=1)
        rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
        start = 54 + 4 * len(palette)
        height = -3 if upside_down else 3
        head = struct.pack("<2sIHHI", b"BM", start + rows.size, 0, 0, start)
        head += struct.pack("<IiiHHIIiiII", 40, 7, height, 1, bits, 0, 0, 0, 0, len(palette), 0)
        colours = b"".join(bytes([grey, grey, grey, 0]) for grey in palette)
        path.write_bytes(head + colours + (rows if upside_down else rows[::-1]).tobytes())

    write(indices)
    assert np.array_equal(lcv.read_image(path), np.array(palette)[indices][..., None].repeat(3, 2))
    if len(palette) < 2**bits:
        indices[1, 2] = len(palette)
        write(indices)
        with pytest.raises(FileError, match=f"a pixel has colour {len(palette)} of a palette of"):
            lcv.read_image(path)


def test_a_png_that_pillow_refuses_is_damaged(tmp_path, rgb, monkeypatch):
    Image.fromarray(rgb).save(tmp_path / "a.png")

    def refuse(self):
        raise OSError("no such luck")

    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", refuse)
    with pytest.raises(FileError, match=r"a\.png: damaged PNG: no such luck"):
        lcv.read_image(tmp_path / "a.png")


def test_a_bmp_of_os2(tmp_path):
    """Its header has 12 bytes: width, height, planes and bits of two bytes each."""
    pixels = bytes([1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0])
    head = struct.pack("<2sIHHI", b"BM", 26 + len(pixels), 0, 0, 26)
    head += struct.pack("<IHHHH", 12, 2, 2, 1, 24)
    path = tmp_path / "a.bmp"
    path.write_bytes(head + pixels)
    assert lcv.read_image(path).tolist() == [[[9, 8, 7], [12, 11, 10]], [[3, 2, 1], [6, 5, 4]]]
    path.write_bytes(head + pixels[:-1])
    with pytest.raises(FileError, match="cut BMP: 41 bytes are too few, wanted 42"):
        lcv.read_image(path)

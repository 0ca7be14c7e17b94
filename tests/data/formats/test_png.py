"""The walk through a PNG finds every kind of damage, and our writer's files are exact."""

from __future__ import annotations

import io
import struct
import zlib
from itertools import chain

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import png_chunk, png_file, some_rgb
from lcv.data.formats.png import PASSES, _chunks, encode_png, walk_png
from lcv.errors import FileError

LIMIT = 2**28
# Three rows of two grey pixels, filter 0 before each.
ROWS = bytes([0, 1, 2, 0, 3, 4, 0, 5, 6])
GOOD = png_file(2, 3, 8, 0, ROWS)
SIGNATURE, HEADER, DATA, END = GOOD[:8], GOOD[8:33], GOOD[33:-12], GOOD[-12:]


def walk(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    return walk_png(tmp_path / "a.png", LIMIT)


def data(packed):
    return png_chunk(b"IDAT", packed)


def test_a_good_file_passes_and_is_stripped_to_its_pixels(tmp_path):
    text = png_chunk(b"tEXt", b"who\0knows")
    exif = png_chunk(b"eXIf", b"MM\0*")
    png = walk(tmp_path, SIGNATURE + HEADER + text + exif + DATA + text + END + b"more")
    assert (png.width, png.height, png.depth, png.colour) == (2, 3, 8, 0)
    assert png.kind == "8-bit grey"
    assert png.exif == b"MM\0*"
    assert png.stripped.startswith(SIGNATURE + HEADER)
    (packed,) = handed_on(png)
    assert zlib.decompress(packed) == ROWS
    assert ROWS in packed  # inflated already, so that the decoder need not do it again


def handed_on(png):
    """The contents of the chunks with image data that a decoder gets; each is whole."""
    rest, found = png.stripped[33 : -len(END)], []
    assert png.stripped.endswith(END)
    while rest:
        (length,) = struct.unpack_from(">I", rest)
        found.append(rest[8 : 8 + length])
        assert rest.startswith(png_chunk(b"IDAT", found[-1]))
        rest = rest[12 + length :]
    return found


@pytest.mark.parametrize("size", [1, 70, 2**16 - 2, 2**16 - 1, 2**16, 3 * 2**17, 2**20])
@pytest.mark.parametrize(("chunk", "most"), [(1 << 24, 1), (1 << 18, 5)])
def test_what_is_handed_on_is_the_same_data(tmp_path, monkeypatch, size, chunk, most):
    """Rows of `size` grey pixels, handed on in chunks of 16 MB, or smaller ones."""
    monkeypatch.setattr("lcv.data.formats.png.CHUNK", chunk)
    rows = b"\0" + np.random.default_rng(size).bytes(size)
    chunks = handed_on(walk(tmp_path, png_file(size, 1, 8, 0, rows)))
    assert zlib.decompress(b"".join(chunks)) == rows
    assert len(chunks) <= most
    assert len(chunks) > 1 or size < chunk or most == 1


def test_image_data_in_many_chunks_is_one(tmp_path):
    packed = zlib.compress(ROWS)
    many = b"".join(data(packed[i : i + 1]) for i in range(len(packed))) + data(b"")
    png = walk(tmp_path, SIGNATURE + HEADER + many + END)
    assert png.height == 3
    assert [zlib.decompress(each) for each in handed_on(png)] == [ROWS]


def test_a_great_many_chunks_that_hold_nothing_are_refused(tmp_path):
    packed = zlib.compress(ROWS)
    few, many = (SIGNATURE + HEADER + data(packed) + n * data(b"") + END for n in (1000, 1300))
    assert walk(tmp_path, few).height == 3
    with pytest.raises(FileError, match="too many chunks for its size"):
        walk(tmp_path, many)


@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 3), (3, 2), (5, 5), (8, 8), (17, 13)])
@pytest.mark.parametrize(("depth", "colour"), [(1, 0), (2, 3), (4, 0), (8, 2), (16, 4), (16, 6)])
def test_the_length_of_image_data_is_known_to_the_byte(tmp_path, size, interlaced, depth, colour):
    width, height = size
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    starts = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
    passes = [*starts, (0, 1, 1, 2)] if interlaced else [(0, 0, 1, 1)]
    length = 0
    for x, y, dx, dy in passes:
        across, down = len(range(x, width, dx)), len(range(y, height, dy))
        length += down * (1 + (across * bits + 7) // 8) if across else 0
    palette = png_chunk(b"PLTE", bytes(3))
    kwargs = {"interlaced": interlaced, "before": palette if colour == 3 else b""}
    good = png_file(width, height, depth, colour, bytes(length), **kwargs)
    assert walk(tmp_path, good).interlaced == bool(interlaced)
    # Pillow agrees that this is a whole picture.
    if (depth, colour) != (16, 4):
        Image.open(io.BytesIO(good)).load()
    with pytest.raises(FileError, match="rows are missing"):
        walk(tmp_path, png_file(width, height, depth, colour, bytes(length - 1), **kwargs))
    with pytest.raises(FileError, match="more rows than"):
        walk(tmp_path, png_file(width, height, depth, colour, bytes(length + 1), **kwargs))


def test_every_pixel_is_in_one_pass_of_an_interlaced_picture():
    side = range(24)
    pixels = [
        (column, row) for x, y, dx, dy in PASSES for column in side[x::dx] for row in side[y::dy]
    ]
    assert sorted(pixels) == [(column, row) for column in side for row in side]
    counts = [len(side[x::dx]) * len(side[y::dy]) for x, y, dx, dy in PASSES]
    assert counts == [9, 9, 18, 36, 72, 144, 288]


@pytest.mark.parametrize("bad", range(7))
def test_the_filters_of_every_pass_are_looked_at_and_nothing_else(tmp_path, bad):
    """An 8×8 picture: rows of 1, 1, 2, 2, 4, 4 and 8 pixels, all of them 200."""
    rows = [(1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)]
    good = [[bytes([4]) + width * b"\xc8" for _ in range(height)] for width, height in rows]
    assert walk(tmp_path, png_file(8, 8, 8, 0, b"".join(chain(*good)), interlaced=1)).interlaced
    good[bad][-1] = b"\5" + good[bad][-1][1:]
    with pytest.raises(FileError, match="row filter 5 does not exist"):
        walk(tmp_path, png_file(8, 8, 8, 0, b"".join(chain(*good)), interlaced=1))


def header(*values):
    return png_chunk(b"IHDR", struct.pack(">IIBBBBB", *values))


PACKED = zlib.compress(ROWS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GIF89a", "does not begin with the PNG signature"),
        (SIGNATURE, "it ends after its signature, without the end chunk"),
        (SIGNATURE + DATA + END, "begins with a IDAT chunk, not with its header"),
        (SIGNATURE + HEADER + HEADER + DATA + END, "a IHDR chunk, which must not be here"),
        (SIGNATURE + HEADER + END, "holds 0 of the 9 bytes that 3 rows need; rows are missing"),
        (SIGNATURE + HEADER + DATA, r"ends after its IDAT, without the end chunk \(IEND\)"),
        (GOOD[:-1], "its IEND chunk declares 0 bytes, more than the file has left"),
        (SIGNATURE + HEADER + DATA[:-1] + b"\0" + END, "checksum of its IDAT chunk is wrong"),
        (SIGNATURE + HEADER[:-1] + b"\0" + DATA + END, "checksum of its IHDR chunk is wrong"),
        (SIGNATURE + HEADER + DATA + END[:-1] + b"\0", "checksum of its IEND chunk is wrong"),
        (SIGNATURE + HEADER + data(PACKED[:-1]) + END, "no end, its checksum is missing"),
        (SIGNATURE + HEADER + data(PACKED[:-1] + b"\0") + END, "does not inflate .*check"),
        (SIGNATURE + HEADER + data(PACKED + b"\0") + END, "image data goes on after its end"),
        (SIGNATURE + HEADER + DATA + data(b"\0") + END, "image data goes on after its end"),
        (SIGNATURE + HEADER + data(zlib.compress(ROWS[:6])) + END, "holds 6 of the 9 bytes"),
        (SIGNATURE + HEADER + data(zlib.compress(b"\7" + ROWS[1:])) + END, "row filter 7 does"),
        (
            SIGNATURE
            + HEADER
            + data(PACKED[:5])
            + png_chunk(b"tEXt", b"")
            + data(PACKED[5:])
            + END,
            "goes on after other chunks",
        ),
        (SIGNATURE + header(2, 3, 8, 3, 0, 0, 0) + DATA + END, r"no palette \(PLTE\)"),
        (SIGNATURE + header(0, 3, 8, 0, 0, 0, 0) + DATA + END, "declares 0×3 pixels"),
        (SIGNATURE + header(2, 3, 8, 1, 0, 0, 0) + DATA + END, "colour type 1.* do not exist"),
        (SIGNATURE + header(2, 3, 4, 2, 0, 0, 0) + DATA + END, "depth 4, colour type 2"),
        (SIGNATURE + header(2, 3, 8, 0, 0, 0, 2) + DATA + END, "interlace 2"),
        (SIGNATURE + header(30000, 30000, 8, 2, 0, 0, 0) + DATA + END, "30000×30000 pixels, more"),
        (
            SIGNATURE + header(16000, 16000, 8, 2, 0, 0, 0) + DATA + END,
            "claim to unpack to 768016000",
        ),
        (SIGNATURE + HEADER + png_chunk(b"NEWS", b"") + DATA + END, "a NEWS chunk, which must not"),
        (SIGNATURE + HEADER + b"\0\0\0\0\1\2\3\4" + DATA + END, "where a chunk should begin"),
    ],
)
def test_damage_is_found_and_said(tmp_path, content, message):
    with pytest.raises(FileError, match=message) as caught:
        walk(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / "a.png"))


def test_every_flipped_bit_is_found(tmp_path):
    for position in range(len(GOOD)):
        content = bytearray(GOOD)
        content[position] ^= 1 << (position % 8)
        with pytest.raises(FileError):
            walk(tmp_path, bytes(content))


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1), (1, 9, 3)])
def test_what_is_encoded_is_what_pillow_decodes(shape):
    samples = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(np.array(Image.open(io.BytesIO(encode_png(samples)))), samples)
    deep = np.random.default_rng(1).integers(0, 65536, shape[:2], dtype=np.uint16)
    assert np.array_equal(np.array(Image.open(io.BytesIO(encode_png(deep)))), deep)


def test_a_large_picture_in_one_chunk_is_walked_in_pieces(tmp_path):
    rgb = np.tile(some_rgb(60, 80), (16, 16, 1))
    assert walk(tmp_path, encode_png(rgb)).width == 1280
    flat = walk(tmp_path, encode_png(np.zeros((3000, 2000), np.uint8)))
    assert (flat.width, flat.height) == (2000, 3000)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    path, content = tmp_path / "a.png", io.BytesIO(SIGNATURE + HEADER + DATA[:-7])
    chunks = _chunks(path, content, len(GOOD))
    assert next(chunks)[0] == b"IHDR"
    with pytest.raises(FileError, match=r"a\.png: damaged PNG: it ends inside its IDAT chunk;"):
        next(chunks)

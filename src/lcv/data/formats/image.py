"""Read a picture as RGB in eight bits, whatever it was, and refuse it when it is damaged."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
from PIL import BmpImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from lcv.data.formats.animation import check_webp, is_webp
from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_pixels,
    file_size,
    read_start,
)
from lcv.data.formats.decode import check_jpeg_body, decode_deep_png
from lcv.data.formats.exif import orientation, upright
from lcv.data.formats.jpeg import START as JPEG_START
from lcv.data.formats.jpeg import walk_jpeg
from lcv.data.formats.netpbm import read_netpbm
from lcv.data.formats.pillow_files import DAMAGES, kind_of, read_by_pillow
from lcv.data.formats.png import SIGNATURE as PNG_SIGNATURE
from lcv.data.formats.png import Png, encode_png, walk_png
from lcv.errors import FileError
from lcv.files import whole_file


def read_image(path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS) -> np.ndarray:
    """A picture as (H, W, 3) uint8 RGB: PNG, JPEG, PPM, PGM, WebP, BMP or TIFF, known by its content;
    also AVIF and HEIC, where the installed Pillow reads them.

    Grey becomes RGB, a palette is looked up, transparency is dropped, sixteen bits are scaled to
    eight (v / 257 rounded, not clipped), and a rotation noted in EXIF is carried out. A picture
    with missing rows, a wrong checksum or a cut body is refused with FileError, also where its
    decoder would fill the gap; so is one that declares more than `max_pixels`.
    """
    path = Path(path)
    size = file_size(path, "an image file")
    start = read_start(path, 16)
    if start.startswith(PNG_SIGNATURE):
        png = walk_png(path, max_pixels)
        return upright(_png_to_rgb(path, png), orientation(png.exif))
    if start.startswith(JPEG_START):
        return _read_jpeg(path, max_pixels)
    if start[:2] in (b"P5", b"P6"):
        samples = read_netpbm(path, size, max_pixels)
        return samples if samples.shape[2] == 3 else np.repeat(samples, 3, axis=2)
    if is_webp(start):
        return _read_webp(path, size, max_pixels)
    if start[:2] == b"BM":
        return _read_bmp(path, size, max_pixels)
    if (kind := kind_of(start)) is not None:
        pixels = read_by_pillow(path, kind, size, max_pixels)
        return pixels if pixels.ndim == 3 else np.repeat(_eight_bits(pixels)[..., None], 3, axis=2)
    raise FileError(
        f"{path}: not an image that can be read ({size} bytes); wanted PNG, JPEG, PPM, PGM, WebP, "
        f"BMP or TIFF, so convert other kinds to PNG"
    )


def write_image(path: str | os.PathLike[str], rgb: np.ndarray, overwrite: bool = False) -> None:
    """Write (H, W, 3) uint8 RGB as .png or .ppm, without loss, or as .jpg (quality 95)."""
    if not isinstance(rgb, np.ndarray) or rgb.dtype != np.uint8:
        found = getattr(rgb, "dtype", type(rgb).__name__)
        raise FileError(f"{path}: cannot write an image of {found}, wanted a uint8 array 0 … 255")
    if rgb.ndim != 3 or rgb.shape[2] != 3 or 0 in rgb.shape:
        raise FileError(f"{path}: cannot write an image of shape {rgb.shape}, wanted (H, W, 3) RGB")
    suffix = Path(path).suffix.lower()
    if suffix == ".png":
        content = encode_png(rgb)
    elif suffix == ".ppm":
        content = b"P6\n%d %d\n255\n" % (rgb.shape[1], rgb.shape[0]) + rgb.tobytes()
    elif suffix in (".jpg", ".jpeg"):
        memory = io.BytesIO()
        Image.fromarray(rgb).save(memory, "JPEG", quality=95)
        content = memory.getvalue()
    else:
        raise FileError(
            f"{path}: cannot write images with the ending {suffix!r}, wanted .png, .ppm or .jpg"
        )
    with whole_file(path, overwrite) as temporary:
        temporary.write_bytes(content)


def decode_png(path: Path, png: Png) -> Image.Image:
    """A PNG of at most eight bits a channel, through Pillow.

    Pillow's file classes are opened by name, past `Image.open`: what is large has been weighed
    already, and its warning about large pictures would speak where `max_pixels` has.
    """
    try:
        picture = PngImagePlugin.PngImageFile(io.BytesIO(png.stripped))
        # All at once: after each block, a thread waits for the interpreter's lock.
        picture.decodermaxblock = len(png.stripped)
        picture.load()
    except DAMAGES as error:
        raise FileError(f"{path}: damaged PNG: {error}") from None
    if png.palette:
        _check_indices(path, np.asarray(picture), png.palette)
    return picture


def _check_indices(path: Path, indices: np.ndarray, colours: int) -> None:
    """Refuse an index without a colour, which decoders paint black."""
    largest = int(indices.max())
    if largest >= colours:
        raise FileError(
            f"{path}: a pixel has colour {largest} of a palette of {colours}; the file is damaged"
        )


def _png_to_rgb(path: Path, png: Png) -> np.ndarray:
    if png.depth < 16:
        picture = decode_png(path, png)
        return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))
    # Pillow reads sixteen bits as the upper eight, or clips them, depending on the kind.
    samples = decode_deep_png(path, png)
    if samples.shape[2] < 3:
        return np.repeat(_eight_bits(samples[:, :, :1]), 3, axis=2)
    return _eight_bits(samples[:, :, :3])


def _eight_bits(deep: np.ndarray) -> np.ndarray:
    """v / 257 to the nearest whole number; 257 is odd, so there are no halves."""
    wide = deep.astype(np.uint32)
    wide += 128
    wide //= 257
    return wide.astype(np.uint8)


def _read_jpeg(path: Path, max_pixels: int) -> np.ndarray:
    jpeg = walk_jpeg(path, max_pixels)
    if jpeg.is_huffman:
        check_jpeg_body(path, jpeg.stripped)
    try:
        picture = JpegImagePlugin.JpegImageFile(io.BytesIO(jpeg.stripped))
        rgb = np.array(picture.convert("RGB"))
    except DAMAGES as error:
        raise FileError(f"{path}: damaged JPEG: {error}") from None
    return upright(rgb, jpeg.orientation)


def _read_webp(path: Path, size: int, max_pixels: int) -> np.ndarray:
    check_webp(path, size, max_pixels)
    try:
        picture = WebPImagePlugin.WebPImageFile(io.BytesIO(path.read_bytes()))
        check_pixels(path, *picture.size, max_pixels)
        rgb = np.array(picture.convert("RGB"))
    except DAMAGES as error:
        raise FileError(f"{path}: damaged WebP: {error}") from None
    return upright(rgb, orientation(picture.info.get("exif", b"").removeprefix(b"Exif\0\0")))


def _read_bmp(path: Path, size: int, max_pixels: int) -> np.ndarray:
    head = read_start(path, 34)
    if len(head) < 34:
        raise FileError(f"{path}: cut BMP: it ends inside its header, after {size} bytes")
    start, header = struct.unpack_from("<II", head, 10)
    # OS/2's header of 12 bytes has shorter fields, and no word about packing.
    width, height, bits, packing = (
        (*struct.unpack_from("<HH2xH", head, 18), 0)
        if header == 12
        else struct.unpack_from("<ii2xHI", head, 18)
    )
    check_pixels(path, width, abs(height), max_pixels)
    if packing not in (0, 3):
        raise FileError(f"{path}: is a packed BMP, which hides damage; convert it to PNG")
    wanted = start + 4 * (-(-width * bits // 32)) * abs(height)
    if size < wanted:
        raise FileError(f"{path}: cut BMP: {size} bytes are too few, wanted {wanted}")
    if bits in (1, 4, 8):
        return _read_palette_bmp(path, start, header, width, height, bits)
    try:
        with path.open("rb") as file:
            picture = BmpImagePlugin.BmpImageFile(file)
            check_pixels(path, *picture.size, max_pixels)
            return np.array(picture.convert("RGB"))
    except DAMAGES as error:
        raise FileError(f"{path}: damaged BMP: {error}") from None


def _read_palette_bmp(
    path: Path, start: int, header: int, width: int, height: int, bits: int
) -> np.ndarray:
    """Colours of a palette, looked up here: Pillow takes some palettes of greys for no palette.

    Colours are blue, green, red, and from the later header on a fourth byte; rows of indices are
    filled up to four bytes, and lie from below to above unless the height is negative.
    """
    content = path.read_bytes()
    entry = 3 if header == 12 else 4
    said = 0 if header < 36 else struct.unpack_from("<I", content, 46)[0]
    colours = said or min(2**bits, (start - 14 - header) // entry)
    palette = np.frombuffer(content[14 + header : start], np.uint8)
    if not 0 < colours <= 2**bits or entry * colours > len(palette):
        raise FileError(f"{path}: damaged BMP: its palette of {colours} colours does not fit")
    palette = palette[: entry * colours].reshape(colours, entry)[:, 2::-1]
    row = 4 * (-(-width * bits // 32))
    rows = np.frombuffer(content, np.uint8, row * abs(height), start).reshape(-1, row)
    if bits == 4:
        rows = np.stack((rows >> 4, rows & 15), 2).reshape(len(rows), -1)
    indices = (np.unpackbits(rows, axis=1) if bits == 1 else rows)[:, :width]
    _check_indices(path, indices, colours)
    rgb = palette[indices]
    return np.ascontiguousarray(rgb[::-1] if height > 0 else rgb)

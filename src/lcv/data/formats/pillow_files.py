"""TIFF, AVIF and HEIC, read by Pillow where the one that is installed can."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, TiffImagePlugin

from lcv.data.formats.checks import check_pixels, check_unpacked
from lcv.data.formats.exif import orientation, upright
from lcv.data.formats.tiff import check_tile, largest_tile
from lcv.errors import FileError

# What Pillow's decoders raise on a damaged body, or on a file beyond their own limit.
DAMAGES = (
    *(OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, MemoryError),
    *(RuntimeError, struct.error, Image.DecompressionBombError),
)
BRANDS = {
    "AVIF": (b"avif", b"avis"),
    "HEIC": (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"),
}
PACKAGES = {"AVIF": "'pillow>=11.3'", "HEIC": "pillow-heif"}


def kind_of(start: bytes) -> str | None:
    """TIFF, AVIF or HEIC, by a file's first twelve bytes."""
    if start[:4] in (b"II*\0", b"MM\0*"):
        return "TIFF"
    named = start[8:12] if start[4:8] == b"ftyp" else b""
    return next((kind for kind, brands in BRANDS.items() if named in brands), None)


def read_by_pillow(path: Path, kind: str, size: int, max_pixels: int) -> np.ndarray:
    """The picture, upright: (H, W, 3) uint8 RGB, or (H, W) uint16 where it is grey in sixteen bits.

    Of colours in sixteen bits, which TIFF has, Pillow gives the upper eight.
    """
    opener = _opener(path, kind)
    if kind == "TIFF":  # its odd tags; not undone, which threads would do to one another
        warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")
    try:
        with path.open("rb") as file:
            tile = largest_tile(path, file, size) if kind == "TIFF" else 0
            picture = opener(file)
            check_pixels(path, picture.width, picture.height, max_pixels)
            check_unpacked(path, size, 4 * picture.width * picture.height)
            check_tile(path, tile, picture.width, picture.height)
            pages = getattr(picture, "n_frames", 1)
            if pages > 1 and kind != "HEIC":  # which has a main one
                raise FileError(
                    f"{path}: holds {pages} pictures, wanted one; store them one by one"
                )
            deep = picture.mode.startswith("I;16")
            if picture.mode in ("I", "F"):
                raise FileError(
                    f"{path}: has pixels of 32 bits, wanted 8 or 16; their range is not known"
                )
            pixels = np.asarray(picture if deep else picture.convert("RGB"))
            turned = orientation((picture.info.get("exif") or b"").removeprefix(b"Exif\0\0"))
    except DAMAGES as error:
        raise FileError(f"{path}: damaged {kind}: {error}") from None
    if kind == "TIFF":
        turned = picture.tag_v2.get(274, 1)  # where EXIF has its orientation from
    return upright(pixels.astype(np.uint16 if deep else np.uint8), turned)


def _opener(path: Path, kind: str) -> Any:
    """Pillow's class for this kind: by its name, so that large pictures are ours to judge."""
    if kind == "TIFF":
        return TiffImagePlugin.TiffImageFile
    try:
        if kind == "AVIF":
            from PIL import AvifImagePlugin

            if AvifImagePlugin.SUPPORTED:
                return AvifImagePlugin.AvifImageFile
        else:
            import pillow_heif  # type: ignore[import-not-found]

            return pillow_heif.HeifImageFile
    except ImportError:
        pass
    raise FileError(
        f"{path}: is {kind}, which the installed Pillow does not read; say "
        f"pip install {PACKAGES[kind]}, or convert the picture to PNG"
    )

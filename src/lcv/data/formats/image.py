"""Read a picture as RGB in eight bits, whatever it was, and refuse it when it is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from lcv.errors import FileError


def read_image(path: str | os.PathLike[str]) -> np.ndarray:
    """A picture as (H, W, 3) uint8 RGB.

    Grey becomes RGB, a palette is looked up, transparency is dropped, sixteen bits are scaled to
    eight (not clipped), and a rotation noted in EXIF is carried out.
    """
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path}: this is a folder, wanted an image file")
    try:
        with Image.open(path) as picture:
            picture.load()
            upright = ImageOps.exif_transpose(picture)
            return _to_rgb(upright)
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except UnidentifiedImageError:
        size = path.stat().st_size
        raise FileError(
            f"{path}: not an image that can be read ({size} bytes); wanted PNG, JPEG, PPM "
            f"or another common picture format"
        ) from None
    except Image.DecompressionBombError as error:
        raise FileError(f"{path}: too large to read safely: {error}") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise FileError(f"{path}: damaged or not readable: {error}") from None


def _to_rgb(picture: Image.Image) -> np.ndarray:
    if picture.mode.startswith("I") or picture.mode == "F":
        wide = np.asarray(picture, dtype=np.float64)
        # Pillow's modes "I;16" and "I" both come from files of sixteen bits a channel.
        grey = np.clip(np.rint(wide / 257), 0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.array(picture.convert("RGB"))

"""Flow in numpy's `.npy`, and in `.npz` with the keys `flow` and, optionally, `valid`.

Nothing is ever unpickled, and the size is held against the file before memory is taken.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_length,
    check_pixels,
    check_unpacked,
    file_size,
    known_flow,
    mark_unknown,
)
from lcv.errors import FileError

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The latter five are how zipfile meets unknown versions and impossible offsets, names and dates.
DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error),
    *(NotImplementedError, RuntimeError, OSError, ValueError, OverflowError),
)


def read_npy(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); NaN, infinity and beyond 1e9 are not valid."""
    size = file_size(path, "a .npy file")
    with path.open("rb") as file:
        return known_flow(_read_flow(path, file, size, max_pixels))


def read_npz(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool) from `flow` and, where it is there, `valid`."""
    whole = file_size(path, "a .npz file")
    valid = None
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "flow.npy" not in names:
                raise FileError(
                    f"{path}: has the keys {[n.removesuffix('.npy') for n in names[:8]]}, wanted "
                    f"'flow' and, optionally, 'valid'"
                )
            with _member(path, archive, "flow.npy", whole) as (file, size):
                flow = _read_flow(path, file, size, max_pixels)
            if "valid.npy" in names:
                with _member(path, archive, "valid.npy", whole) as (file, size):
                    valid = _read_valid(path, file, size, flow.shape[:2])
    except DAMAGES as error:
        raise FileError(f"{path}: damaged .npz archive: {error}") from None
    return known_flow(flow, valid)


@contextmanager
def _member(
    path: Path, archive: zipfile.ZipFile, name: str, whole: int
) -> Iterator[tuple[IO[bytes], int]]:
    """One file of the archive and the size it unpacks to; zipfile compares its CRC at the end.

    whole: bytes of the archive; what a member claims to take of them may be a lie
    """
    entry = archive.getinfo(name)
    if entry.flag_bits & 1 or entry.compress_type not in METHODS:
        raise FileError(f"{path}: {name} is encrypted or packed in a way numpy does not use")
    check_unpacked(path, min(entry.compress_size, whole), entry.file_size)
    with archive.open(entry) as file:
        yield file, entry.file_size


def _read_flow(path: Path, file: IO[bytes], size: int, max_pixels: int) -> np.ndarray:
    dtype, fortran, shape = _header(path, file)
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise FileError(f"{path}: its flow has the type {dtype.str!r}, wanted float32 ('<f4')")
    if len(shape) != 3 or shape[2] != 2:
        raise FileError(f"{path}: its flow has the shape {shape}, wanted (H, W, 2), u and v last")
    check_pixels(path, shape[1], shape[0], max_pixels)
    values = _body(path, file, size, dtype, fortran, shape)
    # Beyond float32's range is beyond 1e9 too: infinite, and so unknown.
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _read_valid(path: Path, file: IO[bytes], size: int, wanted: tuple[int, ...]) -> np.ndarray:
    dtype, fortran, shape = _header(path, file)
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or shape != wanted:
        raise FileError(
            f"{path}: its valid is {dtype.str!r} {shape}, wanted bool ('|b1') or numbers {wanted}"
        )
    values = _body(path, file, size, dtype, fortran, shape)
    valid = values != 0
    if not np.isin(values[valid], (1, 255)).all() or np.unique(values[valid]).size > 1:
        found = [value.item() for value in np.unique(values)[:8]]
        raise FileError(f"{path}: its valid holds {found}, wanted only 0 and 1, or 0 and 255")
    return valid


def _header(path: Path, file: IO[bytes]) -> tuple[np.dtype, bool, tuple[int, ...]]:
    """Type, Fortran order and shape of an array in numpy's format."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"its format has the version {version[0]}.{version[1]}")
        # Versions 2 and 3 have longer headers.
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if not all(type(side) is int for side in shape):
            raise ValueError(f"its shape is {shape}")
        if not all(abs(side) < 2**63 for side in shape):  # Python may refuse to print such numbers
            raise ValueError("its shape has a side of more than 63 bits")
    except (MemoryError, RecursionError):  # of Python's parser, on brackets within brackets
        raise FileError(
            f"{path}: damaged or not a numpy array: its header is nested deeper than any numpy "
            f"writes, wanted type, order and shape"
        ) from None
    # Anyone's bytes: numpy meets them with exceptions of many classes, some without words.
    except Exception as error:
        said = " ".join(str(error).split()).partition("Header info")
        why = "its header is longer than any numpy writes" if said[1] else said[0][:200]
        if "malformed node" in why:  # of Python's parser
            why = "its header holds more than plain values"
        raise FileError(
            f"{path}: damaged or not a numpy array: {why or type(error).__name__}"
        ) from None
    return dtype, fortran, shape


def _body(
    path: Path,
    file: IO[bytes],
    size: int,
    dtype: np.dtype,
    fortran: bool,
    shape: tuple[int, ...],
) -> np.ndarray:
    start, declared = file.tell(), math.prod(shape) * dtype.itemsize
    check_length(path, size, start + declared, f"an array {shape} of {dtype.str!r}")
    content = file.read(declared)
    check_length(path, start + len(content), start + declared, "the size its header declares")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def encode_npy(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """Pixels that are not valid become NaN."""
    mark_unknown(flow, valid, np.nan)
    np.save(content := io.BytesIO(), flow, allow_pickle=False)
    return [content.getbuffer()]


def encode_npz(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """`flow`, 0 where not valid, and `valid`, packed."""
    np.savez_compressed(content := io.BytesIO(), flow=flow, valid=valid)
    return [content.getbuffer()]

"""Flow in numpy's `.npy`, and in `.npz` with the keys `flow` and, optionally, `valid`.

The headers are read here and not by numpy: nothing is ever unpickled or evaluated, and the size
is held against the file before memory is taken.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_length,
    check_pixels,
    check_unpacked,
    file_size,
    known_flow,
)
from lcv.errors import FileError

MAGIC = b"\x93NUMPY"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The latter five are how zipfile meets unknown versions and impossible offsets, names and dates.
DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error),
    *(NotImplementedError, RuntimeError, OSError, ValueError, OverflowError),
)
LONGEST_HEADER = 10_000
PIECE = 1 << 20
FLOATS = {order + kind for order in "<>=" for kind in ("f2", "f4", "f8")}
TRUTHS = {"|b1", "|u1", "|i1", *FLOATS}
TRUTHS |= {order + kind for order in "<>=" for kind in ("u1", "i1", "u2", "i2", "i4", "i8")}
ITEM = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*('[^']*'|True|False|\([\d, ]*\))\s*(,|$)"
)


def read_npy(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); NaN, infinity and beyond 1e9 are not valid."""
    size = file_size(path, "a .npy file")
    with path.open("rb") as file:
        return known_flow(_read_flow(path, file, size, max_pixels))


def read_npz(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool) from `flow` and, where it is there, `valid`."""
    file_size(path, "a .npz file")
    valid = None
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "flow.npy" not in names:
                raise FileError(
                    f"{path}: has the keys {[n.removesuffix('.npy') for n in names[:8]]}, wanted "
                    f"'flow' and, optionally, 'valid'"
                )
            with _member(path, archive, "flow.npy") as (file, size):
                flow = _read_flow(path, file, size, max_pixels)
            if "valid.npy" in names:
                with _member(path, archive, "valid.npy") as (file, size):
                    valid = _read_valid(path, file, size, flow.shape[:2])
    except DAMAGES as error:
        raise FileError(f"{path}: damaged .npz archive: {error}") from None
    return known_flow(flow, valid)


@contextmanager
def _member(path: Path, archive: zipfile.ZipFile, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """One file of the archive and the size it unpacks to; zipfile compares its CRC at the end."""
    entry = archive.getinfo(name)
    if entry.flag_bits & 1 or entry.compress_type not in METHODS:
        raise FileError(f"{path}: {name} is encrypted or packed in a way numpy does not use")
    check_unpacked(path, entry.compress_size, entry.file_size)
    with archive.open(entry) as file:
        yield file, entry.file_size


def _read_flow(path: Path, file: IO[bytes], size: int, max_pixels: int) -> np.ndarray:
    kind, fortran, shape, start = _header(path, file, size)
    if kind not in FLOATS:
        raise FileError(f"{path}: its flow has the type {kind!r}, wanted float32 ('<f4')")
    if len(shape) != 3 or shape[2] != 2:
        raise FileError(f"{path}: its flow has the shape {shape}, wanted (H, W, 2), u and v last")
    check_pixels(path, shape[1], shape[0], max_pixels)
    values = _body(path, file, size, start, kind, fortran, shape)
    # Beyond float32's range is beyond 1e9 too: infinite, and so unknown.
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _read_valid(path: Path, file: IO[bytes], size: int, wanted: tuple[int, ...]) -> np.ndarray:
    kind, fortran, shape, start = _header(path, file, size)
    if kind not in TRUTHS or shape != wanted:
        raise FileError(
            f"{path}: its valid is {kind!r} {shape}, wanted bool ('|b1') or numbers {wanted}"
        )
    values = _body(path, file, size, start, kind, fortran, shape)
    valid = values != 0
    if not np.isin(values[valid], (1, 255)).all() or np.unique(values[valid]).size > 1:
        found = [value.item() for value in np.unique(values)[:8]]
        raise FileError(f"{path}: its valid holds {found}, wanted only 0 and 1, or 0 and 255")
    return valid


def _header(path: Path, file: IO[bytes], size: int) -> tuple[str, bool, tuple[int, ...], int]:
    """(type, Fortran order, shape, bytes before the values) of an array in numpy's format."""
    start = file.read(8)
    if start[:6] != MAGIC:
        raise FileError(f"{path}: begins with {start[:6]!r}, wanted {MAGIC!r}; not a numpy array")
    layout = {1: "<H", 2: "<I", 3: "<I"}.get(start[6] if len(start) == 8 else 0)
    if layout is None:
        raise FileError(f"{path}: has an unknown version of numpy's format, wanted 1, 2 or 3")
    field = file.read(struct.calcsize(layout))
    length = struct.unpack(layout, field)[0] if len(field) == struct.calcsize(layout) else size
    before = 8 + len(field) + length
    if length > LONGEST_HEADER or before > size:
        raise FileError(f"{path}: its numpy header declares {length} bytes; the file is damaged")
    text = file.read(length).decode("latin-1").strip()
    found: dict[str, str] = {}
    position, end = 1, len(text) - 1
    while text[:1] == "{" and text[-1:] == "}" and position < end:
        item = ITEM.match(text, position, end)
        if item is None or item[1] in found:
            break
        found[item[1]] = item[2]
        position = item.end()
    kinds = [found.get(name, "")[:1] for name in ("descr", "fortran_order", "shape")]
    if text[position:end].strip() or kinds[0] != "'" or kinds[1] not in "TF" or kinds[2] != "(":
        raise FileError(f"{path}: its numpy header {text[:80]!r} is damaged or not an array's")
    numbers = [part.strip() for part in found["shape"][1:-1].split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 12 for part in numbers):
        raise FileError(f"{path}: its numpy header {text[:80]!r} is damaged or not an array's")
    shape = tuple(int(part) for part in numbers)
    return found["descr"].strip("'"), found["fortran_order"] == "True", shape, before


def _body(
    path: Path,
    file: IO[bytes],
    size: int,
    start: int,
    kind: str,
    fortran: bool,
    shape: tuple[int, ...],
) -> np.ndarray:
    declared = math.prod(shape) * np.dtype(kind).itemsize
    check_length(path, size, start + declared, f"an array {shape} of {kind!r}")
    values = np.empty(math.prod(shape), dtype=kind)
    window, filled = values.data.cast("B"), 0
    while filled < values.nbytes:
        piece = file.read(min(values.nbytes - filled, PIECE))
        if not piece:
            break
        window[filled : filled + len(piece)] = piece
        filled += len(piece)
    check_length(path, start + filled, start + values.nbytes, "the size its header declares")
    return values.reshape(shape, order="F" if fortran else "C")


def encode_npy(flow: np.ndarray, valid: np.ndarray) -> bytes:
    """Pixels that are not valid become NaN."""
    flow[~valid] = np.nan
    np.save(content := io.BytesIO(), flow, allow_pickle=False)
    return content.getvalue()


def encode_npz(flow: np.ndarray, valid: np.ndarray) -> bytes:
    """`flow`, 0 where not valid, and `valid`, packed."""
    np.savez_compressed(content := io.BytesIO(), flow=flow, valid=valid)
    return content.getvalue()

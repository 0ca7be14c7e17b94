"""Spring's `.flo5`: an HDF5 file with one dataset "flow" (H, W, 2) float32, NaN where unknown.

Needs h5py (`pip install 'lcv-flow[spring]'`), imported when first used. Flow that lies in other
files (links, external or virtual storage) or behind a filter other than HDF5's own is not read.
"""

from __future__ import annotations

import importlib
import io
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from lcv.data.formats.checks import (
    LIMIT_PIXELS,
    check_pixels,
    check_unpacked,
    file_size,
    known_flow,
    mark_unknown,
    read_start,
)
from lcv.errors import FileError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
KEY = "flow"
# Deflate, shuffle, Fletcher's checksum: those that HDF5 itself defines and h5py always brings.
FILTERS = {1, 2, 3}


def read_flo5(path: Path, max_pixels: int = LIMIT_PIXELS) -> tuple[np.ndarray, np.ndarray]:
    """(flow (H, W, 2) float32, valid (H, W) bool); NaN, infinity and beyond 1e9 are not valid."""
    size = file_size(path, "a .flo5 file")
    if read_start(path, 8) != SIGNATURE:
        raise FileError(f"{path}: does not begin with the HDF5 signature; this is not a .flo5 file")
    h5py = h5py_for(path)
    try:
        # No lock: datasets often lie on disks that are read-only or know no locks.
        with h5py.File(path, "r", locking=False) as file:
            values = _read_dataset(path, h5py, file, size, max_pixels)
    # h5py turns HDF5's errors into many of Python's own; all mean that the file is damaged.
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise FileError(f"{path}: damaged HDF5 file: {_one_line(error)}") from None
    return known_flow(values)


def _read_dataset(path: Path, h5py: Any, file: Any, size: int, max_pixels: int) -> np.ndarray:
    link = file.get(KEY, getlink=True)
    if link is None:
        raise FileError(f"{path}: has no dataset {KEY!r}, only {sorted(file)[:8]}; not a flow")
    if not isinstance(link, h5py.HardLink):
        raise FileError(f"{path}: its dataset {KEY!r} is a link elsewhere, which is not followed")
    data = file[KEY]
    if not isinstance(data, h5py.Dataset):
        raise FileError(f"{path}: {KEY!r} is a {type(data).__name__}, wanted a dataset")
    if data.ndim != 3 or data.shape[2] != 2 or data.dtype.kind != "f" or data.dtype.itemsize > 8:
        raise FileError(f"{path}: its flow is {data.dtype} {data.shape}, wanted float32 (H, W, 2)")
    height, width, _ = data.shape
    check_pixels(path, width, height, max_pixels)
    _check_storage(path, data, size)
    check_unpacked(path, size, data.size * data.dtype.itemsize)
    return data[()].astype(np.float32)


def _check_storage(path: Path, data: Any, size: int) -> None:
    """Refuse what HDF5 would fill up, fetch from elsewhere, or unpack beyond the declared size."""
    plan = data.id.get_create_plist()
    filters = {plan.get_filter(i)[0] for i in range(plan.get_nfilters())}
    if data.is_virtual or data.external or not filters <= FILTERS:
        raise FileError(
            f"{path}: its flow lies in other files or behind filters {sorted(filters)}, which are "
            f"not read; wanted plain, chunked or gzip storage"
        )
    if data.chunks is None:
        if data.id.get_storage_size() != data.size * data.dtype.itemsize:
            raise FileError(f"{path}: stores less flow than it declares; the file is cut")
        return
    counts = [-(-length // chunk) for length, chunk in zip(data.shape, data.chunks, strict=True)]
    if data.id.get_num_chunks() != math.prod(counts) or data.id.get_storage_size() > size:
        raise FileError(f"{path}: stores less flow than it declares; the file is cut")
    # A chunk is unpacked whole, however little of it lies inside the flow.
    if math.prod(data.chunks) > max(2 * data.size, 2**20):
        raise FileError(f"{path}: its chunks {data.chunks} exceed its flow {data.shape}")


def encode_flo5(flow: np.ndarray, valid: np.ndarray) -> list[bytes | memoryview]:
    """Packed with gzip; pixels that are not valid become NaN."""
    mark_unknown(flow, valid, np.nan)
    content = io.BytesIO()
    with importlib.import_module("h5py").File(content, "w") as file:
        file.create_dataset(KEY, data=flow, compression="gzip", compression_opts=5)
    return [content.getbuffer()]


def h5py_for(path: str | os.PathLike[str]) -> Any:
    """The package, or an error that names the file it is needed for."""
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise FileError(
            f"{path}: .flo5 files need h5py, which is not installed; run pip install 'lcv-flow[spring]'"
        ) from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

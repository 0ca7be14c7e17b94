"""What every reader asks before it allocates, and every writer of flow before it writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from lcv.errors import FileError

LIMIT_PIXELS = 2**28
"""A file that declares more pixels than this is refused; readers take another limit by argument."""

UNPACKED_FREELY = 2**25
MOST_PACKED = 100
"""How much a packed file may unpack to: this many bytes, or this many times its own size."""

UNKNOWN_ABOVE = 1e9
"""Middlebury's rule: a flow component beyond this, in either direction, means "not known"."""


def file_size(path: Path, wanted: str) -> int:
    """The size in bytes of an ordinary file; `wanted` says what it should have been.

    Pipes and devices are refused: opening one can wait for ever, and it has no size to hold a
    header against.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be opened: {error}") from None
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{path}: this is a folder, wanted {wanted}")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{path}: this is no ordinary file, wanted {wanted} on disk")
    if not os.access(path, os.R_OK):
        raise FileError(f"{path}: may not be read by you; change its permissions")
    return status.st_size


def read_start(path: Path, count: int) -> bytes:
    """The first `count` bytes of a file, or all there are."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def check_pixels(path: Path, width: int, height: int, max_pixels: int) -> None:
    """Refuse a declared size that is empty, negative or beyond the limit."""
    if width < 1 or height < 1:
        raise FileError(
            f"{path}: declares {width}×{height} pixels, wanted at least 1×1; the file is damaged"
        )
    if width * height > max_pixels:
        raise FileError(
            f"{path}: declares {width}×{height} pixels, more than the {max_pixels} that are "
            f"allowed; make it smaller, or, if the file can be trusted, read it in Python with "
            f"max_pixels={width * height}"
        )


def check_unpacked(path: Path, packed: int, unpacked: int) -> None:
    """Refuse a packed file that declares far more bytes than any picture or flow packs into it."""
    if unpacked > max(UNPACKED_FREELY, MOST_PACKED * packed):
        raise FileError(
            f"{path}: its {packed} bytes claim to unpack to {unpacked}, wanted at most "
            f"{MOST_PACKED} times as many; the file is damaged, or, if it can be trusted, store it "
            f"less packed"
        )


def check_length(path: Path, found: int, wanted: int, meaning: str) -> None:
    """Refuse a file whose length does not follow from its header."""
    if found != wanted:
        few_or_many = "few" if found < wanted else "many"
        raise FileError(
            f"{path}: {found} bytes are too {few_or_many}, wanted {wanted} for {meaning}; "
            f"the file is damaged, fetch or write it again"
        )


def known_flow(flow: np.ndarray, valid: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Flow with 0 where it is not known, and where it is known.

    flow: (H, W, 2), overwritten; valid: (H, W) bool or None → flow float32 (H, W, 2), valid (H, W)
    A pixel is known where both components are numbers within ±1e9 (`UNKNOWN_ABOVE`), and `valid`
    does not deny it.
    """
    # Comparisons with NaN are false, so that one comparison a side removes NaN and infinity too.
    inside = (flow >= -UNKNOWN_ABOVE) & (flow <= UNKNOWN_ABOVE)
    known = inside[..., 0] & inside[..., 1]
    if valid is not None:
        known &= valid
    flow[~known] = 0
    return np.ascontiguousarray(flow, dtype=np.float32), known


def mark_unknown(flow: np.ndarray, valid: np.ndarray, value: float) -> None:
    """Write a value where the flow is not valid. A flow that is all valid may be read-only."""
    if not valid.all():
        flow[~valid] = value


def flow_to_write(
    path: str | os.PathLike[str], flow: np.ndarray, valid: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The flow (float32, in rows, 0 where invalid) and the mask that a writer may write.

    A flow that is so already, and all valid, is not copied; a writer may change it only where it is invalid.

    Refused: what is no array, a shape other than (H, W, 2), whole numbers, a mask that is not
    bool or of another size, and values that would read back as unknown where `valid` claims them.
    """
    if not isinstance(flow, np.ndarray):
        raise FileError(
            f"{path}: cannot write a flow of type {type(flow).__name__}, wanted a numpy array; "
            f"for a tensor (2, H, W) say flow.permute(1, 2, 0).cpu().numpy()"
        )
    if flow.ndim != 3 or flow.shape[2] != 2 or 0 in flow.shape:
        raise FileError(
            f"{path}: cannot write a flow of shape {flow.shape}, wanted (H, W, 2) with u, v last"
        )
    if flow.dtype.kind != "f":
        raise FileError(
            f"{path}: cannot write a flow of type {flow.dtype}, wanted float32; "
            f"convert with flow.astype('float32')"
        )
    if valid is None:
        valid = np.ones(flow.shape[:2], dtype=bool)
    if not isinstance(valid, np.ndarray) or valid.dtype != bool or valid.shape != flow.shape[:2]:
        found = f"{getattr(valid, 'dtype', type(valid).__name__)} {getattr(valid, 'shape', '')}"
        raise FileError(
            f"{path}: cannot write with valid of {found.strip()}, wanted bool {flow.shape[:2]}"
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, refused below
        flow = flow.astype(np.float32, order="C", subok=False, copy=not valid.all())
    mark_unknown(flow, valid, 0)
    if not max(flow.max(), -flow.min()) <= UNKNOWN_ABOVE:  # NaN, too, is not
        unfit = ~(np.abs(flow) <= UNKNOWN_ABOVE).all(axis=2)
        y, x = (int(i) for i in np.argwhere(unfit)[0])
        raise FileError(
            f"{path}: the flow at x={x}, y={y} is ({flow[y, x, 0]}, {flow[y, x, 1]}), wanted "
            f"numbers within ±1e9; mark such pixels with valid=False ({int(unfit.sum())} of them)"
        )
    return flow, valid

"""Read and write flow in any format: the ending of the name says which."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lcv.data.formats.checks import LIMIT_PIXELS, file_size, flow_to_write, read_start
from lcv.data.formats.flo import encode_flo, read_flo
from lcv.data.formats.flo5 import encode_flo5, h5py_for, read_flo5
from lcv.data.formats.kitti import encode_kitti, read_kitti
from lcv.data.formats.numpy_files import encode_npy, encode_npz, read_npy, read_npz
from lcv.data.formats.pfm import encode_pfm, read_pfm
from lcv.errors import FileError
from lcv.files import check_output, whole_file

Reader = Callable[[Path, int], tuple[np.ndarray, np.ndarray]]
Encoder = Callable[[np.ndarray, np.ndarray], list[bytes | memoryview]]
"""Takes flow (H, W, 2) float32, which it may change where it is not valid, and valid (H, W) bool.

Gives the parts of a file, in order; they may be the flow's own memory.
"""

FORMATS: dict[str, tuple[Reader, Encoder]] = {
    ".flo": (read_flo, encode_flo),
    ".png": (read_kitti, encode_kitti),
    ".pfm": (read_pfm, encode_pfm),
    ".flo5": (read_flo5, encode_flo5),
    ".npy": (read_npy, encode_npy),
    ".npz": (read_npz, encode_npz),
}

STARTS = {
    b"PIEH": ".flo",
    b"\x89PNG": ".png",
    b"PF": ".pfm",
    b"Pf": ".pfm",
    b"\x89HDF": ".flo5",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
}


def read_flow(
    path: str | os.PathLike[str], max_pixels: int = LIMIT_PIXELS
) -> tuple[np.ndarray, np.ndarray]:
    """Flow in pixels and where it is known: (flow (H, W, 2) float32, valid (H, W) bool).

    Channel 0 is x, right positive; channel 1 is y, down positive. Where the file says nothing
    (KITTI's invalid pixels, Middlebury's values beyond 1e9, NaN, infinity), `valid` is False and
    flow is 0, so that no number is there that could be taken for a measurement.

    The format follows from the ending of the name (.flo, .png in KITTI's encoding, .pfm, .flo5,
    .npy, .npz); a name with another ending is read by its first bytes. A file that is damaged in
    any way, or that declares more than `max_pixels`, is refused with FileError.
    """
    path = Path(path)
    file_size(path, "a flow file")
    start = read_start(path, 8)
    looks = next((suffix for begin, suffix in STARTS.items() if start.startswith(begin)), None)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        if looks is None:
            raise FileError(
                f"{path}: neither its name nor its first bytes {start!r} say which flow format it "
                f"has; wanted one of {', '.join(FORMATS)}"
            )
        suffix = looks
    elif looks not in (None, suffix):
        raise FileError(
            f"{path}: is named {suffix} but begins like a {looks} file; rename it to {looks} if "
            f"that is what it is"
        )
    return FORMATS[suffix][0](path, max_pixels)


def write_flow(
    path: str | os.PathLike[str],
    flow: np.ndarray,
    valid: np.ndarray | None = None,
    overwrite: bool = False,
) -> None:
    """Write flow (H, W, 2), float, in the format that the ending of the name says.

    .flo, .pfm, .flo5, .npy and .npz keep every bit of float32; .png (KITTI) rounds to 1/64 pixel
    and clips to −512 … 511.98. `valid` (H, W) bool is kept by all of them: where it is False,
    flow reads back as unknown. The file appears whole or not at all, and replaces another only
    with `overwrite=True`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise FileError(
            f"{path}: no flow format has the ending {suffix!r}, wanted one of {', '.join(FORMATS)}"
        )
    check_output(path, overwrite)
    if suffix == ".flo5":
        h5py_for(path)
    content = FORMATS[suffix][1](*flow_to_write(path, flow, valid))
    with whole_file(path, overwrite) as temporary, temporary.open("wb") as file:
        file.writelines(content)

"""Read an uploaded picture in a process of its own, which has little memory and can write no byte to a file.

A fault in an image decoder then costs that process, not the page.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np

from lcv.demo import limits
from lcv.errors import FileError, LcvError

MEMORY = 3 * 2**30
"""Bytes of address space; a picture of MOST_PIXELS takes under one gigabyte."""


def read_picture(path: Path) -> np.ndarray:
    """The picture as (H, W, 3) uint8 RGB."""
    command = [sys.executable, "-P", "-m", "lcv.demo.picture", str(path), str(limits.MOST_PIXELS)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limits.DECODE_SECONDS)
    except subprocess.TimeoutExpired:
        raise FileError(
            f"{path}: takes longer than {limits.DECODE_SECONDS:.0f} s to decode, which is too long "
            f"for this page"
        ) from None
    if done.returncode == 2:
        raise FileError(done.stderr.decode())
    if done.returncode:
        raise FileError(f"{path}: its decoder broke off; the file is damaged, or too large")
    rgb: np.ndarray = np.load(io.BytesIO(done.stdout), allow_pickle=False)
    return rgb


def _restrict() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _child(path: str, most_pixels: str) -> int:
    from lcv.data.formats.image import read_image

    _restrict()
    try:
        rgb = read_image(path, int(most_pixels))
    except LcvError as error:
        sys.stderr.write(str(error))
        return 2
    np.save(sys.stdout.buffer, rgb, allow_pickle=False)
    return 0


if __name__ == "__main__":
    sys.exit(_child(*sys.argv[1:]))

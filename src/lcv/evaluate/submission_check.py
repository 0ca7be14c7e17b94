"""Find what is wrong with a submission, in a folder or zipped, before a server does.

Servers take a submission a month and say little about why they refuse one. Every file is decoded;
every fault is told with its file, not only the first.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from lcv.data.formats.flo import read_flo
from lcv.data.formats.kitti import SCALE, ZERO, read_kitti
from lcv.errors import FileError
from lcv.evaluate.submission import (
    EXAMPLES,
    PATTERNS,
    SINTEL_SIZE,
    Size,
    check_kind,
    layout_of,
    official_faults,
)

# RAFT's rule for dense truth: a component from here on is no motion that can be learned from.
SINTEL_LIMIT = 1000.0
KITTI_RANGE = (-ZERO / SCALE, (2**16 - 1 - ZERO) / SCALE)
_LARGEST_FILE = 64 * 2**20


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and where."""

    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def check_submission(
    path: str | os.PathLike[str],
    kind: str,
    *,
    data: str | os.PathLike[str] | None = None,
    sizes: Mapping[str, Size] | None = None,
    official: bool = True,
) -> list[Fault]:
    """Everything that is wrong with a folder or a zip archive; an empty list if it may be sent.

    data:     the dataset, whose test frames say which files there must be and of which sizes
    sizes:    the same, already known: name → (height, width)
    official: hold the numbers of scenes and files against those of the whole benchmark
    """
    check_kind(kind)
    if data is not None:
        sizes = layout_of(kind, data).sizes()
    path = Path(path)
    if path.is_dir():
        entries, faults = _in_folder(path)
    elif path.is_file():
        entries, faults = _in_archive(path)
    else:
        raise FileError(f"{path}: there is no such folder or archive")
    faults += _name_faults(kind, entries, sizes)
    if official:
        named = {fault.file for fault in faults}
        faults += [
            Fault(file, text) for file, text in official_faults(kind, entries) if file not in named
        ]
    for name in entries:
        if not PATTERNS[kind].fullmatch(name):
            continue
        wanted = SINTEL_SIZE if sizes is None and kind == "sintel" else (sizes or {}).get(name)
        try:
            with _as_file(path, name) as file:
                message = _content_fault(kind, file, wanted)
        except FileError as error:
            message = str(error)
        if message:
            faults.append(Fault(name, message))
    return faults


def _in_folder(folder: Path) -> tuple[list[str], list[Fault]]:
    """The files of a folder by their names from it, and what is there that is no file."""
    names, faults = [], []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            faults.append(Fault(name, "is a link, wanted the file itself"))
        elif path.is_file():
            names.append(name)
        elif not path.is_dir():
            faults.append(Fault(name, "is no ordinary file"))
        elif not any(path.iterdir()):
            faults.append(Fault(name, "is an empty folder; remove it"))
    return names, faults


def _in_archive(path: Path) -> tuple[list[str], list[Fault]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FileError(
            f"{path}: is no whole zip archive ({error}); wanted a folder, or the .zip of one"
        ) from None
    faults = []
    counts = Counter(member.filename for member in members)
    for name, count in counts.items():
        if count > 1:
            faults.append(Fault(name, f"is in the archive {count} times, wanted once"))
    names: list[str] = []
    for member in members:
        name = member.filename
        if member.is_dir() or name in names:
            continue
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name or ":" in name:
            faults.append(Fault(name, "leads out of the archive; wanted a plain path inside it"))
        elif stat.S_ISLNK(member.external_attr >> 16):
            faults.append(Fault(name, "is a link, wanted the file itself"))
        else:
            names.append(name)
    return names, faults


def _name_faults(kind: str, names: list[str], sizes: Mapping[str, Size] | None) -> list[Fault]:
    faults = []
    for name in names:
        if not PATTERNS[kind].fullmatch(name):
            faults.append(
                Fault(
                    name, f"does not belong here; {kind} wants {EXAMPLES[kind]} and no other file"
                )
            )
        elif sizes is not None and name not in sizes:
            faults.append(Fault(name, "does not belong here: the dataset has no such pair"))
    here = set(names)
    faults += [Fault(name, "missing") for name in sizes or () if name not in here]
    return faults


@contextmanager
def _as_file(path: Path, name: str) -> Iterator[Path]:
    """A file of the submission as one on disk, since our readers want one."""
    if path.is_dir():
        yield path / name
        return
    with tempfile.TemporaryDirectory(prefix="lcv-") as folder:
        target = Path(folder) / PurePosixPath(name).name
        try:
            with zipfile.ZipFile(path) as archive:
                declared = archive.getinfo(name).file_size
                if declared > _LARGEST_FILE:
                    raise FileError(
                        f"unpacks to {declared} bytes, more than a flow of this benchmark has"
                    )
                with archive.open(name) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
        # Anyone's bytes: zipfile and zlib meet them with many exceptions.
        except (
            OSError,
            RuntimeError,
            ValueError,
            EOFError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise FileError(f"cannot be unpacked: {error}") from None
        yield target


def _content_fault(kind: str, file: Path, wanted: Size | None) -> str | None:
    """What is wrong with a flow file, in words without its path; None if nothing is."""
    try:
        flow, valid = read_flo(file) if kind == "sintel" else read_kitti(file)
    except FileError as error:
        return str(error).removeprefix(f"{file}: ")
    height, width = valid.shape
    if wanted is not None and (height, width) != tuple(wanted):
        return f"is {width}×{height} pixels, wanted {wanted[1]}×{wanted[0]}, its frame's size"
    if not valid.all():
        holes = int((~valid).sum())
        if kind == "kitti":
            return f"{_pixels(holes)} marked invalid, wanted flow at every pixel"
        return f"NaN, infinity or the mark for unknown at {_pixels(holes)}, wanted a number at each"
    return range_fault(kind, flow)


def range_fault(kind: str, flow: np.ndarray) -> str | None:
    """What is wrong with the range of a flow (H, W, 2), if anything."""
    if kind == "sintel":
        bad = (np.abs(flow) >= SINTEL_LIMIT).any(-1)
        wanted = f"wanted under {SINTEL_LIMIT:g} px in both components"
    else:
        low, high = KITTI_RANGE
        bad = ((flow <= low) | (flow >= high)).any(-1)
        wanted = f"wanted inside the format's range of {low:g} … {high:.2f} px, its ends excluded"
    if not bad.any():
        return None
    y, x = (int(i) for i in np.argwhere(bad)[0])
    return (
        f"the flow is out of range at {_pixels(int(bad.sum()))}, first at x={x}, y={y} with "
        f"({flow[y, x, 0]:g}, {flow[y, x, 1]:g}); {wanted}"
    )


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"

"""Open a checkpoint file without trusting it: tensors come out, nothing in it is run.

Three kinds of file, told apart by their first bytes: torch archives (zip, or the older plain
pickle), numpy's .npz, and safetensors. Checksums are verified before anything is read, files are
never mapped into memory, pickles are looked through (`torch_scan`) and then read as weights only,
sizes are held against what is there, and every tensor must be finite.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from lcv.errors import FileError, WeightsError
from lcv.files import SMALL
from lcv.models.torch_scan import check_torch_legacy, check_torch_zip

# Far above any network here; a declared size beyond it is an attack or a slip.
MAX_BYTES = 4 * 2**30
MOST_DIMENSIONS = 8
MOST_PACKED = 20
"""How many times its size an .npz may unpack to, beyond 32 MiB; weights hardly pack at all."""
MOST_NAMES = 4
"""How many tensors of a file may share their numbers, on average; published ones: two, at most."""
ENDINGS = {".npz": "npz", ".safetensors": "safetensors"}
ENDINGS |= dict.fromkeys((".pth", ".pt", ".ckpt", ".tar"), "torch")
NUMBERS = {
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
}


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a file by name, and what else it says.

    kind: "torch", "npz" or "safetensors";  extras: what lay beside the tensors (plain values only)
    """

    path: Path
    kind: str
    state: dict[str, Tensor]
    extras: dict[str, Any] = field(default_factory=dict)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read and verify a checkpoint; tensors on the CPU, `module.` prefixes removed."""
    path = Path(path)
    head = _first_bytes(path)
    # First safetensors: it begins with the length of its header, whose bytes can be any signature.
    if head[4:10] == b'\0\0\0\0{"':
        checkpoint = _read_safetensors(path)
    elif head.startswith(b"PK"):
        members = _check_zip(path)
        plain = members and all(member.filename.endswith(".npy") for member in members)
        checkpoint = _read_npz(path, members) if plain else _read_torch(path)
    elif head.startswith(b"\x80"):
        checkpoint = _read_torch(path)
    else:
        raise WeightsError(
            f"{path}: not a checkpoint (it begins with {head[:8]!r}); wanted a .pth, .ckpt, .tar, "
            f".npz or .safetensors file"
        )
    named = ENDINGS.get(path.suffix.lower(), checkpoint.kind)
    if named != checkpoint.kind:
        raise WeightsError(
            f"{path}: has the content of a {checkpoint.kind} file, wanted {named} by its name; give "
            f"it the right ending if its content is right"
        )
    with untrusted(path, "holds tensors that cannot be examined"):
        _check_tensors(checkpoint)
    return checkpoint


def read_torch_content(path: Path) -> Any:
    """Whatever a torch archive holds, verified and read as plain values and tensors."""
    _first_bytes(path)
    return _load_torch(path)


@contextmanager
def untrusted(path: Path, complaint: str) -> Iterator[None]:
    """Turn whatever a reader of untrusted bytes raises into one error that names the file."""
    try:
        yield
    except WeightsError as error:
        if str(path) in str(error):
            raise
        raise WeightsError(f"{path}: {error}") from None
    except pickle.UnpicklingError as error:
        # What torch says further is advice to trust the file, which is not ours to pass on.
        named = re.search(r"GLOBAL (\S+)", str(error))
        raise WeightsError(
            f"{path}: refused, since it holds more than tensors and plain values"
            f"{f' ({named[1]})' if named else ''}, or is damaged; nothing in it was run. "
            f"Ask its author for the weights alone."
        ) from None
    # Bytes that anyone may have written: readers meet them with exceptions of every class, from
    # IndexError to MemoryError, so that no list of classes is ever complete.
    except Exception as error:
        lines = str(error).strip().splitlines()
        first = lines[0] if lines else ""
        if isinstance(error, MemoryError | RecursionError):
            first = "it asks for more memory, or is nested deeper, than any checkpoint"
        if not first or re.search(r"weights_only|safe_globals|torch\.", first):
            first = type(error).__name__
        raise WeightsError(f"{path}: {complaint}: {first[:200]}") from None


def _first_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise FileError(f"{path}: this is a folder, wanted a checkpoint file")
        if not path.is_file():
            what = "this is a device or a pipe" if path.exists() else "there is no such file"
            raise FileError(f"{path}: {what}, wanted a checkpoint file")
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def _check_zip(path: Path) -> list[zipfile.ZipInfo]:
    """The members of an archive whose checksums are all right."""
    with (
        untrusted(path, "the archive is damaged or not a checkpoint's"),
        zipfile.ZipFile(path) as archive,
    ):
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        _check_bytes(path, total)
        if total > max(2**25, MOST_PACKED * path.stat().st_size):
            raise WeightsError(
                f"{path}: its {path.stat().st_size} bytes unpack to {total}, wanted at most "
                f"{MOST_PACKED} times as many; weights do not pack so well"
            )
        damaged = archive.testzip()
    if damaged is not None:
        raise WeightsError(
            f"{path}: the archive is damaged, the checksum of {damaged} is wrong. Fetch it again."
        )
    return members


def _check_bytes(path: Path, total: int) -> None:
    if total > MAX_BYTES:
        raise WeightsError(
            f"{path}: declares {total / 2**30:.1f} GiB of content, more than the "
            f"{MAX_BYTES / 2**30:.0f} GiB that any network here could need"
        )


def _load_torch(path: Path) -> Any:
    members = _check_zip(path) if _first_bytes(path).startswith(b"PK") else None
    with untrusted(path, "damaged or not a torch checkpoint"), warnings.catch_warnings():
        if members is None:
            check_torch_legacy(path)
        else:
            check_torch_zip(path, members)
        # torch asks to be told of pickles of another protocol; what it can read of them is enough.
        warnings.filterwarnings("ignore", "Detected pickle protocol", UserWarning)
        return torch.load(path, map_location="cpu", weights_only=True, mmap=False)


def _read_torch(path: Path) -> Checkpoint:
    content = _load_torch(path)
    if not isinstance(content, Mapping):
        raise WeightsError(f"{path}: holds a {type(content).__name__}, wanted tensors by name")
    extras = {}
    if isinstance(content.get("state_dict"), Mapping):
        extras = {key: value for key, value in content.items() if key != "state_dict"}
        content = content["state_dict"]
    with untrusted(path, "not tensors by name"):
        return Checkpoint(path, "torch", _without_prefix(dict(content)), extras)


def _read_npz(path: Path, members: list[zipfile.ZipInfo]) -> Checkpoint:
    import numpy as np

    state = {}
    with (
        untrusted(path, "refused, it is not plain arrays by name"),
        zipfile.ZipFile(path) as archive,
    ):
        for member in members:
            with archive.open(member) as file:
                _check_npy_header(path, member, file)
            with archive.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            state[member.filename.removesuffix(".npy")] = torch.from_numpy(np.array(array))
    return Checkpoint(path, "npz", state)


def _check_npy_header(path: Path, member: zipfile.ZipInfo, file: IO[bytes]) -> None:
    """Refuse an array whose header promises other than what follows, before room is made for it."""
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    declared, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
    if not dtype.hasobject and declared != there:
        raise WeightsError(
            f"{path}: damaged, {member.filename} declares {declared} bytes of numbers, "
            f"but {there} follow"
        )


def _read_safetensors(path: Path) -> Checkpoint:
    from safetensors.torch import load

    size = path.stat().st_size
    _check_bytes(path, size)
    with untrusted(path, "damaged or not a safetensors file"):
        header, end = _safetensors_header(path)
        if end != size:
            raise WeightsError(f"{path}: declares {end} bytes, but has {size}; it is damaged")
        # Read, not mapped: a file that is cut short under a mapping ends the process.
        state = load(path.read_bytes())
    extras = dict(header.get("__metadata__") or {})
    return Checkpoint(path, "safetensors", _without_prefix(state), extras)


def _safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header, and the size that the file should have; refused if it could take much memory."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > SMALL:
            raise WeightsError(f"{path}: its header has {length} bytes, wanted at most {SMALL}")
        header = json.loads(file.read(length))
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    if any(len(entry["shape"]) > MOST_DIMENSIONS for entry in tensors):
        raise WeightsError(f"{path}: has a tensor of more than {MOST_DIMENSIONS} dimensions")
    return header, 8 + length + max((entry["data_offsets"][1] for entry in tensors), default=0)


def _without_prefix(state: dict[Any, Any]) -> dict[str, Any]:
    """The names without the `module.` that DataParallel puts before every one of them."""
    odd = [name for name in state if not isinstance(name, str)]
    if odd:
        raise WeightsError(f"a tensor has the name {odd[0]!r}, wanted text")
    if state and all(name.startswith("module.") for name in state):
        return {name.removeprefix("module."): value for name, value in state.items()}
    return state


def _check_tensors(checkpoint: Checkpoint) -> None:
    if not checkpoint.state:
        raise WeightsError(f"{checkpoint.path}: holds no tensors")
    _check_repeats(checkpoint)
    faults = []
    for name, value in checkpoint.state.items():
        if not isinstance(value, Tensor):
            faults.append(f"{name} is a {type(value).__name__}, not a tensor")
        elif value.layout != torch.strided or value.dtype not in NUMBERS or value.is_meta:
            faults.append(f"{name} is a {value.dtype} {value.layout} tensor, wanted plain numbers")
        elif value.numel() * value.itemsize > value.untyped_storage().nbytes():
            # A view of one number can be of any size, so it is refused before it is looked at.
            there = value.untyped_storage().nbytes() // value.itemsize
            faults.append(
                f"{name} repeats its {there} numbers to {value.numel()}; save it as a copy"
            )
        elif value.is_floating_point() and not bool(torch.isfinite(value).all()):
            bad = int((~torch.isfinite(value)).sum())
            faults.append(f"{name} holds {bad} of {value.numel()} numbers that are NaN or infinite")
    if faults:
        raise WeightsError(f"{checkpoint.path}: " + listing(faults))


def _check_repeats(checkpoint: Checkpoint) -> None:
    """Refuse many names for the same numbers, each of which would be looked through again."""
    tensors = [value for value in checkpoint.state.values() if isinstance(value, Tensor)]
    plain = [value for value in tensors if value.layout == torch.strided and not value.is_meta]
    storages = {s.data_ptr(): s.nbytes() for s in (value.untyped_storage() for value in plain)}
    # A single tensor that repeats its own numbers is refused by name, in `_check_tensors`.
    named = sum(min(v.numel() * v.itemsize, v.untyped_storage().nbytes()) for v in plain)
    if named > 2**20 + MOST_NAMES * sum(storages.values()):
        raise WeightsError(
            f"{checkpoint.path}: its {len(plain)} tensors name {named} bytes, but only "
            f"{sum(storages.values())} are there; wanted at most {MOST_NAMES} names for each"
        )


def listing(faults: list[str], most: int = 8) -> str:
    """One error that names them all (to a point)."""
    shown = "; ".join(faults[:most])
    return shown + (f"; and {len(faults) - most} more" if len(faults) > most else "")

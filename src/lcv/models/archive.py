"""Open a checkpoint file without trusting it: tensors come out, nothing in it is run.

Three kinds of file, told apart by their first bytes: torch archives (zip, or the older plain
pickle), numpy's .npz, and safetensors. Checksums are verified before anything is read, files are
never mapped into memory, pickles are read as weights only, and every tensor must be finite.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lcv.errors import FileError, WeightsError

MAX_BYTES = (
    4 * 2**30
)  # far above any network here; a declared size beyond it is an attack or a slip


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
    if not path.is_file():
        raise FileError(f"{path}: there is no such file, wanted a checkpoint")
    with path.open("rb") as file:
        head = file.read(16)
    # First safetensors: it begins with the length of its header, whose bytes can be any signature.
    if head[4:10] == b'\0\0\0\0{"':
        checkpoint = _read_safetensors(path)
    elif head.startswith(b"PK"):
        checkpoint = _read_zip(path)
    elif head.startswith(b"\x80"):
        checkpoint = _read_torch(path)
    else:
        raise WeightsError(
            f"{path}: not a checkpoint (it begins with {head[:8]!r}); wanted a .pth, .ckpt, .tar, "
            f".npz or .safetensors file"
        )
    _check_tensors(checkpoint)
    return checkpoint


def _read_zip(path: Path) -> Checkpoint:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > MAX_BYTES:
                raise WeightsError(
                    f"{path}: declares {total / 2**30:.1f} GiB of content, more than the "
                    f"{MAX_BYTES / 2**30:.0f} GiB that any network here could need"
                )
            damaged = archive.testzip()
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise WeightsError(f"{path}: the archive is damaged: {error}") from None
    if damaged is not None:
        raise WeightsError(
            f"{path}: the archive is damaged, the checksum of {damaged} is wrong. Fetch it again."
        )
    if members and all(member.filename.endswith(".npy") for member in members):
        return _read_npz(path)
    return _read_torch(path)


def _read_torch(path: Path) -> Checkpoint:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=False)
    except pickle.UnpicklingError as error:
        reason = str(error).strip().splitlines()
        named = next((line for line in reason if "GLOBAL" in line), reason[0] if reason else "")
        raise WeightsError(
            f"{path}: refused, since it holds more than tensors and plain values; nothing in it "
            f"was run. ({named.strip()}) Ask its author for the weights alone."
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        first = (str(error).strip().splitlines() or ["it ends too early"])[0]
        raise WeightsError(f"{path}: damaged or not a torch checkpoint: {first}") from None
    if not isinstance(content, Mapping):
        raise WeightsError(f"{path}: holds a {type(content).__name__}, wanted tensors by name")
    extras = {}
    if isinstance(content.get("state_dict"), Mapping):
        extras = {key: value for key, value in content.items() if key != "state_dict"}
        content = content["state_dict"]
    return Checkpoint(path, "torch", _without_prefix(dict(content)), extras)


def _read_npz(path: Path) -> Checkpoint:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            state = {name: torch.from_numpy(np.array(arrays[name])) for name in arrays.files}
    except (ValueError, TypeError, OSError, EOFError) as error:
        raise WeightsError(f"{path}: refused, it is not plain arrays by name: {error}") from None
    return Checkpoint(path, "npz", state)


def _read_safetensors(path: Path) -> Checkpoint:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            extras = dict(file.metadata() or {})
    except (SafetensorError, ValueError, OSError) as error:
        raise WeightsError(f"{path}: damaged or not a safetensors file: {error}") from None
    return Checkpoint(path, "safetensors", _without_prefix(state), extras)


def _without_prefix(state: dict[Any, Any]) -> dict[str, Any]:
    """The names without the `module.` that DataParallel puts before every one of them."""
    if state and all(str(name).startswith("module.") for name in state):
        return {str(name).removeprefix("module."): value for name, value in state.items()}
    return {str(name): value for name, value in state.items()}


def _check_tensors(checkpoint: Checkpoint) -> None:
    if not checkpoint.state:
        raise WeightsError(f"{checkpoint.path}: holds no tensors")
    faults = []
    for name, value in checkpoint.state.items():
        if not isinstance(value, Tensor):
            faults.append(f"{name} is a {type(value).__name__}, not a tensor")
        elif value.layout != torch.strided or value.is_quantized or value.is_complex():
            faults.append(f"{name} is a {value.dtype} {value.layout} tensor, wanted plain numbers")
        elif value.is_floating_point() and not bool(torch.isfinite(value).all()):
            bad = int((~torch.isfinite(value)).sum())
            faults.append(f"{name} holds {bad} of {value.numel()} numbers that are NaN or infinite")
    if faults:
        raise WeightsError(f"{checkpoint.path}: " + listing(faults))


def listing(faults: list[str], most: int = 40) -> str:
    """One error that names them all (to a point)."""
    shown = "; ".join(faults[:most])
    return shown + (f"; and {len(faults) - most} more" if len(faults) > most else "")

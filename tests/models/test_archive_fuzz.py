"""Checkpoints damaged at random are read or refused by name, and never anything else."""

from __future__ import annotations

import io
import random
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save

from lcv.errors import WeightsError
from lcv.models.archive import read_checkpoint
from testing.corpus import keep

# Readers remark on odd versions and odd escapes in damaged files; the refusal is what counts.
QUIET = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

STATE = {"a.weight": torch.arange(6.0).view(2, 3), "a.steps": torch.tensor(7)}


def npy(header: str, content: bytes = b"") -> bytes:
    """A .npy file with a header of one's own choice."""
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header.encode() + content


def whole(kind: str) -> bytes:
    """A small honest checkpoint of each kind."""
    buffer = io.BytesIO()
    if kind.startswith("torch"):
        zipped = kind == "torch"
        torch.save({"state_dict": STATE, "x": 1}, buffer, _use_new_zipfile_serialization=zipped)
    elif kind == "safetensors":
        return save(STATE, metadata={"lcv": "{}"})
    else:
        write = np.savez_compressed if kind == "npz deflated" else np.savez
        write(buffer, **{name: value.numpy() for name, value in STATE.items()})
    return buffer.getvalue()


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Bits flipped, bytes set to extremes, a piece cut out, doubled or moved; the head is kept."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(2, len(changed))
        kind = draw.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del changed[at : at + draw.randrange(1, 9)]
        elif kind == 3:
            changed[at:at] = changed[at : at + draw.randrange(1, 9)]
        else:
            changed[at : at + 4] = draw.randbytes(4)
    return bytes(changed)


def refusal(path) -> list[str]:
    """The message with which a file is refused, if it is; any other error is the test's."""
    try:
        read_checkpoint(path)
    except WeightsError as error:
        return [str(error)]
    except Exception as error:
        raise AssertionError(f"kept as {keep('checkpoint', path)}: {error!r}") from error
    return []


def check_messages(refused, path):
    assert len(refused) > 100, "the mutations are too weak"
    assert all(message.startswith(f"{path}: ") for message in refused)
    assert not any("safe_globals" in m or "weights_only" in m for m in refused)


@QUIET
@pytest.mark.parametrize(
    "kind", ["torch", "torch, older", "npz", "npz deflated", "safetensors", "npy header"]
)
def test_damaged_bytes_are_read_or_refused_by_name_and_nothing_else(tmp_path, kind):
    draw, path = random.Random(kind), tmp_path / "a.bin"
    inner = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", bytes(24))
    content = b"" if kind == "npy header" else whole(kind)
    refused = []
    for _ in range(500):
        if kind == "npy header":  # with the archive's checksum made right again
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a.npy", mutated(inner, draw))
        else:
            path.write_bytes(mutated(content, draw))
        refused += refusal(path)
    check_messages(refused, path)


@QUIET
def test_a_damaged_pickle_under_right_checksums_is_refused_by_name(tmp_path):
    """Flips inside the pickle of a zip, which its checksum would otherwise find first."""
    draw, path, refused = random.Random(0), tmp_path / "a.pth", []
    with zipfile.ZipFile(io.BytesIO(whole("torch"))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(500):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                pickled = name.endswith("data.pkl")
                archive.writestr(name, mutated(content, draw) if pickled else content)
        refused += refusal(path)
    check_messages(refused, path)

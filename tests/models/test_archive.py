"""Checkpoint files of every kind, whole and damaged, honest and hostile."""

from __future__ import annotations

import contextlib
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lcv.errors import FileError, WeightsError
from lcv.models.archive import listing, read_checkpoint
from testing.peak import costs
from testing.shared import shared

STATE = {"a.weight": torch.arange(6.0).view(2, 3), "a.steps": torch.tensor(7)}


def same(state):
    assert state.keys() == STATE.keys()
    return all(torch.equal(state[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "older pickle"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_torch_files_with_or_without_prefix(tmp_path, zipped, prefix):
    path = tmp_path / "a.pth"
    state = {prefix + name: value for name, value in STATE.items()}
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    checkpoint = read_checkpoint(path)
    assert checkpoint.kind == "torch"
    assert same(checkpoint.state)


def test_what_lies_beside_a_state_dict_is_kept(tmp_path):
    path = tmp_path / "finetune_1.tar"
    torch.save({"iters": 3, "state_dict": STATE, "mean_L": [[0.1, 0.2, 0.3]]}, path)
    checkpoint = read_checkpoint(path)
    assert same(checkpoint.state)
    assert checkpoint.extras == {"iters": 3, "mean_L": [[0.1, 0.2, 0.3]]}


def test_numpy_and_safetensors(tmp_path):
    np.savez(tmp_path / "a.npz", **{name: value.numpy() for name, value in STATE.items()})
    assert same(read_checkpoint(tmp_path / "a.npz").state)
    save_file(STATE, tmp_path / "a.safetensors", metadata={"lcv": "{}"})
    checkpoint = read_checkpoint(tmp_path / "a.safetensors")
    assert same(checkpoint.state)
    assert checkpoint.extras == {"lcv": "{}"}


@pytest.mark.parametrize("signature", [b"\x80", b"PK"])
def test_a_safetensors_header_whose_length_looks_like_another_format(tmp_path, signature):
    path = tmp_path / "a.safetensors"
    # The header is as long as its padding and some, in steps of eight.
    near = int.from_bytes(signature.ljust(2, b"\0"), "little")
    for padding in range(max(0, near - 400), near + 400, 8):
        save_file(STATE, path, metadata={"lcv": "x" * padding})
        if path.read_bytes().startswith(signature):
            break
    assert path.read_bytes().startswith(signature)
    checkpoint = read_checkpoint(path)
    assert checkpoint.kind == "safetensors"
    assert set(checkpoint.extras) == {"lcv"}


def in_header(text: str, size: int = 0) -> bytes:
    """The beginning of a safetensors file."""
    return len(text).to_bytes(8, "little") + text.encode() + bytes(size)


EMPTY, ZEROS = '"dtype":"F32","shape":[0],"data_offsets":[0,0]', "[" + "0," * 400_000 + "0]"
HEADERS = {
    "tensors": "{" + ",".join(f'"{n:x}":{{{EMPTY}}}' for n in range(200_000)) + "}",
    "dimensions": '{"a":{' + EMPTY.replace("[0]", ZEROS) + "}}",
    "metadata": '{"__metadata__":{' + ",".join(f'"{n}":""' for n in range(1_000_000)) + "}}",
    "marks": '{"a":' + "[" * 900_000 + "}",
    "offsets": '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4000000000]}}',
    "no shape": '{"a":[1]}',
}


def test_no_hostile_safetensors_file_costs_200_mb_or_5_s(tmp_path):
    jobs = []
    for name, text in HEADERS.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(in_header(text, 4))
        jobs.append(("checkpoint", path))
    with (tmp_path / "sparse.safetensors").open("wb") as file:
        file.write(in_header(HEADERS["offsets"].replace("4000000000", "4")))
        file.truncate(3 * 10**9)
    jobs.append(("checkpoint", tmp_path / "sparse.safetensors"))
    for (_, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(f"{path}: "), f"{path.name}: {outcome[:200]}"
        assert len(outcome) < 500
        assert growth < 200 * 10**6, f"{path.name}: {growth / 10**6:.0f} MB ({outcome})"
        assert seconds < 5, f"{path.name}: {seconds:.1f} s ({outcome})"


@pytest.mark.parametrize("name", ["raft-sintel.pth", "raft-small.pth"])
def test_published_files_come_to_the_cpu(name):
    state = read_checkpoint(shared("weights", name)).state
    assert {value.device.type for value in state.values()} == {"cpu"}
    assert "fnet.conv1.weight" in state


class Trap:
    """An object whose unpickling would run a command."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


@pytest.mark.parametrize("kind", ["torch", "older torch", "plain pickle"])
def test_code_in_a_pickle_is_refused_and_runs_nothing(tmp_path, kind):
    sprung, path = tmp_path / "sprung", tmp_path / "a.pth"
    content = {"a": torch.zeros(2), "b": Trap(sprung)}
    if kind == "plain pickle":
        path.write_bytes(pickle.dumps(Trap(sprung)))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=kind == "torch")
    with pytest.raises(WeightsError, match=r"a\.pth: refused, .* nothing in it was run") as caught:
        read_checkpoint(path)
    # torch's own advice is how to trust the file.
    assert not any(word in str(caught.value) for word in ("safe_globals", "weights_only"))
    assert kind == "plain pickle" or "posix.system" in str(caught.value)
    assert not sprung.exists()
    # The trap is real: an ordinary unpickling springs it.
    if kind == "plain pickle":
        pickle.loads(path.read_bytes())
        assert sprung.exists()


def test_objects_in_a_numpy_file_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([Trap(tmp_path / "sprung")], dtype=object))
    with pytest.raises(WeightsError, match=r"a\.npz: refused, it is not plain arrays"):
        read_checkpoint(tmp_path / "a.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_flipped_bit_is_found_by_its_checksum(tmp_path):
    path = tmp_path / "a.pth"
    torch.save({"a": torch.ones(1000)}, path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        member = next(m for m in archive.infolist() if m.filename.endswith("data/0"))
    content[member.header_offset + 200] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"checksum of .*data/0 is wrong"):
        read_checkpoint(path)


@pytest.mark.parametrize("kind", ["pth", "older pth", "npz", "safetensors"])
@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_cut_file_is_refused_by_name(tmp_path, kind, keep):
    path = tmp_path / f"a.{kind.split()[-1]}"
    if kind == "npz":
        np.savez(path, a=np.ones(999))
    elif kind == "safetensors":
        save_file({"a": torch.ones(999)}, path)
    else:
        torch.save({"a": torch.ones(999)}, path, _use_new_zipfile_serialization=kind == "pth")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(WeightsError, match=r"a\.\w+: .*damaged"):
        read_checkpoint(path)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    (tmp_path / "a.pth").write_text("hello, world, this is text")
    with pytest.raises(
        WeightsError, match=r"a\.pth: not a checkpoint \(it begins with b'hello, w'\)"
    ):
        read_checkpoint(tmp_path / "a.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    with pytest.raises(WeightsError, match=r"empty\.pth: not a checkpoint"):
        read_checkpoint(tmp_path / "empty.pth")
    with pytest.raises(FileError, match=r"none\.pth: there is no such file"):
        read_checkpoint(tmp_path / "none.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(WeightsError, match=r"list\.pth: holds a list, wanted tensors by name"):
        read_checkpoint(tmp_path / "list.pth")
    torch.save({}, tmp_path / "nothing.pth")
    with pytest.raises(WeightsError, match=r"nothing\.pth: holds no tensors"):
        read_checkpoint(tmp_path / "nothing.pth")


def test_every_fault_of_every_tensor_is_listed_at_once(tmp_path):
    state = {
        "a": torch.tensor([1.0, torch.nan, torch.inf]),
        "b": "text",
        "d": torch.zeros(2, dtype=torch.complex64),
        "e": torch.zeros(2),
    }
    torch.save(state, tmp_path / "a.pth")
    with pytest.raises(WeightsError) as caught:
        read_checkpoint(tmp_path / "a.pth")
    message = str(caught.value)
    assert "a holds 2 of 3 numbers that are NaN or infinite" in message
    assert "b is a str, not a tensor" in message
    assert "d is a torch.complex64" in message
    assert message.count(";") == 2, "the sound tensor was blamed too"


def test_tensors_that_are_no_plain_numbers_in_memory_are_refused(tmp_path):
    for value, message in {
        torch.zeros(2).to(torch.float8_e4m3fn): "x is a torch.*wanted plain numbers",
        torch.zeros(2, device="meta"): "refused, .*_rebuild_meta_tensor_no_storage",
        torch.eye(3).to_sparse(): "refused, .*_get_layout",
    }.items():
        torch.save({"x": value}, tmp_path / "a.pth")
        with pytest.raises(WeightsError, match=rf"a\.pth: {message}"):
            read_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize("zipped", [True, False])
def test_a_view_that_declares_too_much_is_refused_before_it_is_looked_at(tmp_path, zipped):
    path = tmp_path / "a.pth"
    torch.save({"a": torch.zeros(1).expand(10**13)}, path, _use_new_zipfile_serialization=zipped)
    assert path.stat().st_size < 2000
    with pytest.raises(WeightsError, match=r"a repeats its 1 numbers to 10000000000000; save it"):
        read_checkpoint(path)


def test_an_archive_that_declares_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    torch.save({"a": torch.ones(1000)}, tmp_path / "a.pth")
    monkeypatch.setattr("lcv.models.archive.MAX_BYTES", 1000)
    with pytest.raises(WeightsError, match=r"a\.pth: declares .* GiB of content"):
        read_checkpoint(tmp_path / "a.pth")


def npy(header: str, content: bytes = b"") -> bytes:
    """A .npy file with a header of one's own choice."""
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header.encode() + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000000,)}\n", bytes(8)),
            "damaged, a.npy declares 8000000000000 bytes of numbers, but 8 follow",
        ),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)\n", bytes(8)), "not plain"),
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n", bytes(7)),
            "but 7 follow",
        ),
        (b"hello", "not plain arrays"),
    ],
)
def test_a_numpy_header_is_held_against_what_follows(tmp_path, content, message):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(WeightsError) as caught:
        read_checkpoint(tmp_path / "a.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'a.npz'}: ")
    assert message in str(caught.value)


def test_an_encrypted_archive_is_a_sentence(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones(3))
    content = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.index(signature) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"a\.npz: the archive is damaged .*encrypted"):
        read_checkpoint(path)


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    with pytest.raises(FileError, match="null: this is a device or a pipe, wanted a checkpoint"):
        read_checkpoint(tmp_path / "/dev/null")
    with pytest.raises(FileError, match="gone: there is no such file, wanted a checkpoint file"):
        read_checkpoint(tmp_path / "gone")
    with pytest.raises(FileError, match="this is a folder, wanted a checkpoint file"):
        read_checkpoint(tmp_path)
    with pytest.raises(FileError, match="cannot be read: File name too long"):
        read_checkpoint(tmp_path / ("n" * 300))


def test_a_long_list_is_cut_with_a_count():
    assert listing(["a", "b", "c"], most=2) == "a; b; and 1 more"


def test_a_pickle_of_another_protocol_is_read_or_refused_without_a_word_of_torch(tmp_path, recwarn):
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pth", pickle_protocol=4)
    with contextlib.suppress(WeightsError):  # which of both is up to torch's version
        read_checkpoint(tmp_path / "a.pth")
    assert not [str(each.message) for each in recwarn]

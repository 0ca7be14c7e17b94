"""Checkpoints that ask for more than they hold are refused before torch makes it."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import pickle
import struct
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lcv.errors import WeightsError
from lcv.models.archive import read_checkpoint, read_torch_content
from lcv.models.torch_scan import check_torch_zip
from testing.peak import costs
from testing.shared import shared

MOST_BYTES, MOST_SECONDS = 200 * 10**6, 5.0


class Call:
    """Pickled, a call of this function with these arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def zipped(pickled: bytes, packing: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    """A torch archive with a pickle of one's own, and more members."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", packing) as archive:
        archive.writestr("a/data.pkl", pickled)
        archive.writestr("a/version", b"3\n")
        for name, content in more.items():
            archive.writestr(name.replace("__", "/"), content)
    return memory.getvalue()


def legacy(pickled: bytes, keys: list[str]) -> bytes:
    first = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    parts = [pickle.dumps(each, protocol=2) for each in first]
    return b"".join([*parts, pickled, pickle.dumps(keys, protocol=2)])


def storage_pickle(numel: int) -> bytes:
    """Protocol 2 by hand: {"a": a tensor of one number in a storage of `numel` floats}."""
    number = b"\x8a\x08" + numel.to_bytes(8, "little")
    pid = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu" + number
    return b"\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n(" + (
        pid + b"tQ" + b"K\x00K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRs."
    )


def asking(function, *arguments) -> bytes:
    return pickle.dumps({"a": Call(function, *arguments)}, protocol=2)


def repeated_view() -> bytes:
    memory = io.BytesIO()
    torch.save({"a": torch.zeros(1).expand(2**29)}, memory)  # two gigabytes, within the limit
    return memory.getvalue()


def npz_of_zeros() -> bytes:
    memory = io.BytesIO()
    np.savez_compressed(memory, a=np.zeros(2**25, np.float32))
    return memory.getvalue()


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def again(called: str, arguments: bytes, times: int) -> bytes:
    """A pickle that makes the arguments once, and gives them to a function again and again."""
    first = b"\x80\x02c" + called.replace(" ", "\n").encode() + b"\nq\0" + arguments + b"q\1R"
    return first + b"](" + b"h\0h\1R" * times + b"e."


def numbers(count: int) -> bytes:
    return b"".join(b"J" + i.to_bytes(4, "little") for i in range(count))


AGAIN = {
    "encode": ("_codecs encode", text("a" * 70_000) + text("latin1") + b"\x86", 6000),
    "size": ("torch Size", b"(" + b"K\x01" * 100_000 + b"t\x85", 500),
    "set": ("builtins set", b"](" + numbers(10_000) + b"e\x85", 1000),
    "tensor": ("torch._utils _rebuild_tensor_v2", storage_pickle(1)[37:-3], 10**5),
}


def named_again(names: int, numel: int) -> bytes:
    """One tensor, which torch writes once, under many names."""
    memory = io.BytesIO()
    torch.save(dict.fromkeys(map(str, range(names)), torch.zeros(numel)), memory)
    return memory.getvalue()


EVIL = asking(bytearray, 2**28)


def two_in_one(zip64: str = "") -> bytes:
    """An archive that zipfile finds harmless, after another that torch reads at the same place.

    zip64: the records of large files, of which one "declares" the place, is "elsewhere" or "no record"
    """
    evil, fine = zipped(EVIL), zipped(pickle.dumps({}, protocol=2).ljust(len(EVIL), b"\0"))
    begins = [int.from_bytes(each[-6:-2], "little") for each in (evil, fine)]
    sizes = [len(each) - 22 - begin for each, begin in zip((evil, fine), begins, strict=True)]
    both, end = evil[:-22] + fine[:-22], bytearray(fine[-22:])
    end[-10:-2] = struct.pack("<II", sizes[1], begins[0])

    def record(size: int, begin: int) -> bytes:
        return b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 2, 2, size, begin)

    if zip64 == "no record":
        # Ends the directory as a comment of its last member, so that it is right before the end.
        at = both.rindex(b"PK\1\2")
        locator = b"PK\6\7" + struct.pack("<IQI", 0, len(both), 1)
        start = len(evil) - 22 + begins[1]
        comment = record(0, start).replace(b"PK\6\6", bytes(4)) + locator
        both = both[: at + 32] + struct.pack("<H", len(comment)) + both[at + 34 :] + comment
        end[-10:-6] = struct.pack("<I", sizes[1] + len(comment))
    if zip64 == "declares":
        both += record(sizes[1], begins[0])
        both += b"PK\6\7" + struct.pack("<IQI", 0, len(both) - 56, 1)
    if zip64 == "elsewhere":
        # Both records are true of a directory; zipfile takes the nearer, torch the one named.
        both = evil[:-22] + record(sizes[0], begins[0]) + shifted(fine, len(evil) - 22 + 56)
        begin = len(both) - sizes[1]
        both += record(sizes[1], begin)
        both += b"PK\6\7" + struct.pack("<IQI", 0, len(evil) - 22, 1)
    return both + end


def shifted(archive: bytes, by: int) -> bytes:
    """An archive without its end, the offsets of its members true where it is put."""
    changed = bytearray(archive[:-22])
    at = int.from_bytes(archive[-6:-2], "little")
    while at < len(changed):
        (offset,) = struct.unpack_from("<I", changed, at + 42)
        struct.pack_into("<I", changed, at + 42, offset + by)
        at += 46 + sum(struct.unpack_from("<HHH", changed, at + 28))
    return bytes(changed)


HUGE = 2**33
HOSTILE = {
    "bytearray.pth": lambda: zipped(asking(bytearray, HUGE)),
    "bytearray-legacy.pth": lambda: legacy(asking(bytearray, HUGE), []),
    "storage-called.pth": lambda: zipped(asking(torch.FloatStorage, HUGE)),
    "tensor-called.pth": lambda: zipped(asking(torch.Tensor, HUGE)),
    "from-type.pth": lambda: zipped(
        asking(torch._tensor._rebuild_from_type_v2, torch.FloatStorage, torch.Tensor, (HUGE,), None)
    ),
    "storage-declared.pth": lambda: zipped(storage_pickle(HUGE), a__data__0=bytes(4)),
    "storage-legacy.pth": lambda: legacy(storage_pickle(HUGE), ["0"]) + bytes(8),
    "repeated.pth": repeated_view,
    "packed.pth": lambda: zipped(asking(set), zipfile.ZIP_DEFLATED, a__data__0=bytes(2**27)),
    "long-pickle.pth": lambda: zipped(b"\x80\x02" + b"]" * 2**23 + b"."),
    "deep.pth": lambda: zipped(b"\x80\x02" + b"]" * 10**6 + b"a" * (10**6 - 1) + b"."),
    "zeros.npz": npz_of_zeros,
    "sets.pth": lambda: zipped(b"\x80\x02](" + b"\x8f" * 2_000_000 + b"e."),
    "dicts.pth": lambda: zipped(b"\x80\x02](" + b"}NNs" * 500_000 + b"e."),
    "laughs.pth": lambda: zipped(b"\x80\x02}N\x85q\0" + b"h\0\x86q\0" * 24 + b"Ns."),
    "two-in-one.pth": two_in_one,
    "two-in-one-64.pth": lambda: two_in_one("declares"),
    "two-in-one-elsewhere.pth": lambda: two_in_one("elsewhere"),
    "named-again.pth": lambda: named_again(10_000, 10**6),
    **{f"{name}-again.pth": partial(lambda *a: zipped(again(*a)), *AGAIN[name]) for name in AGAIN},
}


def test_no_hostile_checkpoint_costs_200_mb_or_5_s(tmp_path):
    for name, make in HOSTILE.items():
        (tmp_path / name).write_bytes(make())
    jobs = [("checkpoint", tmp_path / name) for name in HOSTILE]
    for (_, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(f"{path}: "), f"{path.name}: {outcome}"
        assert not any(word in outcome for word in ("MemoryError", "RecursionError", "alloc"))
        assert growth < MOST_BYTES, f"{path.name}: {growth / 10**6:.0f} MB ({outcome})"
        assert seconds < MOST_SECONDS, f"{path.name}: {seconds:.1f} s ({outcome})"


@pytest.mark.parametrize("name", AGAIN)
def test_what_a_call_is_given_again_counts_again(tmp_path, name):
    called, arguments, times = AGAIN[name]
    path, number = tmp_path / "a.pth", {"a__data__0": bytes(4)} if name == "tensor" else {}
    path.write_bytes(zipped(again(called, arguments, 1), **number))
    read_torch_content(path)
    path.write_bytes(zipped(again(called, arguments, times), **number))
    with pytest.raises(WeightsError, match=r"a\.pth: refused, .* would make \d+ in memory, wanted"):
        read_torch_content(path)


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        # The argument is counted while it is empty, and filled before it is used.
        (b"cbuiltins\nset\nq\0]q\1\x85q\2h\1(K\1K\2e", "filled after it was used"),
        (storage_pickle(1)[2:-2] + b"cbuiltins\nset\nh\1\x85R", "builtins.set of an unusual kind"),
        (b"ccollections\nOrderedDict\n]\x85R", "OrderedDict of an unusual kind"),
        (b"]}b", "attributes of something else than an OrderedDict"),
        (b"\x8f", "opcode EMPTY_SET"),
        # Keys and values that all have one hash: multiples of 2^61 − 1, and what a file makes.
        (b"}\x8a\x08" + (2**61 - 1).to_bytes(8, "little") + b"Ns", "a dict with keys other than"),
        (b"}K\1\x85Ns", "a dict with keys other than"),
        (b"cbuiltins\nset\n](" + numbers(10_001) + b"e\x85R", "a set of more than 10000 values"),
    ],
)
def test_calls_that_could_make_more_than_they_are_given_are_refused(tmp_path, pickled, message):
    path = tmp_path / "a.pth"
    pickled = b"\x80\x02" + pickled.replace(b"tRcb", b"tRq\1cb") + b"."
    path.write_bytes(zipped(pickled, a__data__0=bytes(4)))
    with pytest.raises(WeightsError, match=rf"a\.pth: refused, .*{message}"):
        read_torch_content(path)


@pytest.mark.parametrize(
    ("zip64", "message"),
    [
        ("", r"its directory begins at byte \d+, wanted \d+, as its end record says"),
        ("declares", r"its directory begins at byte \d+, wanted \d+, as its end record says"),
        ("elsewhere", "its last bytes are not its end records"),
        ("no record", "its last bytes are not its end records"),
    ],
)
def test_an_archive_in_which_torch_would_read_another_pickle_is_refused(tmp_path, zip64, message):
    path = tmp_path / "a.pth"
    path.write_bytes(two_in_one(zip64))
    with zipfile.ZipFile(path) as archive:
        assert pickle.loads(archive.read("a/data.pkl")) == {}
    assert len(torch.load(path, weights_only=True)["a"]) == 2**28, "the trap is real"
    with pytest.raises(WeightsError, match=rf"a\.pth: {message}"):
        read_checkpoint(path)


def test_one_tensor_may_have_a_few_names_and_not_hundreds(tmp_path):
    path = tmp_path / "a.pth"
    path.write_bytes(named_again(4, 10**6))
    assert len(read_checkpoint(path).state) == 4
    path.write_bytes(named_again(400, 10**6))
    wanted = "its 400 tensors name 1600000000 bytes, but only 4000000 are there; wanted at most 4"
    with pytest.raises(WeightsError, match=rf"a\.pth: {wanted}"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"a__model.safetensors": b""}, "has 'a/model.safetensors' in it"),
        ({"b__data.pkl": b""}, "of one torch checkpoint and nothing else"),
        ({"a__b.zip": b"PK"}, "has 'a/b.zip' in it"),
        ({"a__code__model.py": b""}, "has 'a/code/model.py' in it"),
    ],
)
def test_another_container_inside_is_refused(tmp_path, more, message):
    path = tmp_path / "a.pth"
    path.write_bytes(zipped(pickle.dumps({}, protocol=2), **more))
    with pytest.raises(WeightsError, match=message):
        read_checkpoint(path)


def test_another_container_under_the_name_is_refused(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "a.pth")
    with pytest.raises(WeightsError, match="content of a safetensors file, wanted torch by its"):
        read_checkpoint(tmp_path / "a.pth")


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    """Python's reader and torch's could take different ones."""
    with zipfile.ZipFile(tmp_path / "a.pth", "w") as archive:
        archive.writestr("a/data.pkl", pickle.dumps({}, protocol=2))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a/data.pkl", asking(os.getcwd))
    with pytest.raises(WeightsError, match="there twice"):
        read_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize("name", [3, 2.5, None])
def test_names_that_are_no_text_are_refused(tmp_path, name):
    torch.save({name: torch.ones(2)}, tmp_path / "a.pth")
    with pytest.raises(WeightsError, match=r"a\.pth: a tensor has the name .*, wanted text"):
        read_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_all_that_torch_saves_of_plain_values_and_tensors_is_read(tmp_path, new):
    shared_storage = torch.arange(12.0)
    content = {
        "tensors": [torch.ones(2, dtype=dtype) for dtype in (torch.half, torch.int64, torch.bool)],
        "views": [shared_storage[2:5], shared_storage.view(3, 4).t()],
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "plain": [1, -2, 2**40, 0.5, None, True, "text", b"bytes", (1, (2, 3)), {"a": {3, 4}}],
        "size": torch.ones(2, 3).shape,
        "module": torch.nn.Linear(2, 2).state_dict(),
        "optimiser": torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))]).state_dict(),
    }
    torch.save(content, tmp_path / "a.pth", _use_new_zipfile_serialization=new)
    read = read_torch_content(tmp_path / "a.pth")
    assert str(read) == str(content)


@pytest.mark.parametrize("name", ["raft-kitti.pth", "raft-small.pth"])
def test_published_files_are_read_as_torch_reads_them(name):
    path = shared("weights", name)
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    ours = read_checkpoint(path).state
    assert {f"module.{key}" for key in ours} == theirs.keys()
    assert all(torch.equal(value, theirs[f"module.{key}"]) for key, value in ours.items())


def test_a_safetensors_file_may_be_cut_after_it_was_read(tmp_path: Path):
    """Tensors of a mapped file would end the process here."""
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(2**16)}, path)
    state = read_checkpoint(path).state
    os.truncate(path, 0)
    assert float(state["a"].sum()) == 2**16


def test_an_archive_without_its_pickle_or_with_a_huge_one_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/version", b"3\n")
    members = zipfile.ZipFile(path).infolist()
    with pytest.raises(WeightsError, match=r"has no data\.pkl in it; this is not a torch"):
        check_torch_zip(path, members)
    path.write_bytes(zipped(pickle.dumps({}, protocol=2)))
    members = zipfile.ZipFile(path).infolist()
    check_torch_zip(path, members)
    size = members[0].file_size
    monkeypatch.setattr("lcv.models.torch_scan._most_pickle", lambda _: size - 1)
    with pytest.raises(WeightsError, match=f"its pickle has {size} bytes, too many"):
        check_torch_zip(path, members)


def test_bytes_are_written_as_latin_text_and_no_other(tmp_path):
    path = tmp_path / "a.pth"
    for encoding, fine in (("latin1", True), ("utf-7", False)):
        content = pickle.dumps({"a": Call(codecs.encode, "abc", encoding)}, protocol=2)
        path.write_bytes(zipped(content))
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        with contextlib.nullcontext() if fine else pytest.raises(WeightsError, match="an unusual"):
            check_torch_zip(path, members)

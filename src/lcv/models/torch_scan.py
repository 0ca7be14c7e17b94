"""Look through a torch checkpoint before torch loads it: what it calls, and how much it declares.

torch's weights-only loader runs no code of a file's own, but it makes what the file asks for: a
pickle of 92 bytes can ask for a bytearray, or a storage, of any size. So the opcodes are walked
first, with stand-ins in place of values. Only a few functions may be called, and every storage
must be as long as the bytes that the file has for it.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from lcv.errors import WeightsError

MOST_PICKLE = 2**21
"""Bytes of a pickle, without its tensors, or a 20th of the file. A run of VCN's has 480 thousand."""
CALLED = {
    "collections OrderedDict",
    "torch Size",
    "torch device",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "_codecs encode",  # how protocol 2 writes bytes
    "builtins set",
    "__builtin__ set",
}
MEMBER = re.compile(
    r"[^/]+/(data\.pkl|version|byteorder|data/\d+|\.data/serialization_id"
    r"|\.format_version|\.storage_alignment)"
)
SIZES = {"Double": 8, "Long": 8, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2, "Short": 2}
SIZES |= {"Char": 1, "Byte": 1, "Bool": 1, "Untyped": 1, "ComplexFloat": 8, "ComplexDouble": 16}
LEGACY_PICKLES = 5  # a number, a version, the system, the content, the keys of its storages


class _Name(NamedTuple):
    """A global, not looked up."""

    name: str


class _Storage(NamedTuple):
    key: str
    bytes: int


def check_torch_zip(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse a torch archive with more in it than a pickle and the storages that it names."""
    names = [member.filename for member in members]
    odd = [name for name in names if not MEMBER.fullmatch(name)]
    if odd or len({name.partition("/")[0] for name in names}) != 1:
        raise WeightsError(
            f"{path}: has {(odd or names)[0]!r} in it, wanted the pickle and storages of one torch "
            f"checkpoint and nothing else"
        )
    if len(set(names)) != len(names) or any(m.compress_type or m.flag_bits & 1 for m in members):
        raise WeightsError(
            f"{path}: its members are packed, encrypted or there twice; torch's never"
        )
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise WeightsError(f"{path}: declares more bytes than it has; the file is damaged")
    found = {member.filename.partition("/")[2]: member for member in members}
    if "data.pkl" not in found:
        raise WeightsError(f"{path}: has no data.pkl in it; this is not a torch checkpoint")
    if found["data.pkl"].file_size > _most_pickle(path):
        raise WeightsError(f"{path}: its pickle has {found['data.pkl'].file_size} bytes, too many")
    with zipfile.ZipFile(path) as archive:
        content = archive.read(found["data.pkl"])
    for storage in scan(path, io.BytesIO(content)):
        member = found.get(f"data/{storage.key}")
        if member is None or member.file_size != storage.bytes:
            there = "none" if member is None else member.file_size
            raise WeightsError(
                f"{path}: damaged, storage {storage.key} declares {storage.bytes} bytes, but {there} "
                f"are there"
            )


def check_torch_legacy(path: Path) -> None:
    """The same for the older kind of file, pickles one after another and then the storages."""
    size = path.stat().st_size
    storages: dict[str, int] = {}
    with path.open("rb") as file:
        start = io.BytesIO(file.read(_most_pickle(path)))
        for _ in range(LEGACY_PICKLES):
            storages.update(scan(path, start))
    # Before each storage stands its length, in eight bytes.
    if sum(storages.values()) + 8 * len(storages) != size - start.tell():
        raise WeightsError(
            f"{path}: damaged, its storages declare {sum(storages.values())} bytes, but "
            f"{size - start.tell() - 8 * len(storages)} follow"
        )


def _most_pickle(path: Path) -> int:
    return max(MOST_PICKLE, path.stat().st_size // 20)


def scan(path: Path, file: IO[bytes]) -> set[_Storage]:
    """The storages that the next pickle of the file names; refuses calls that are not CALLED."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    storages = set()

    def since_mark() -> tuple[Any, ...]:
        start = marks.pop()
        items = tuple(stack[start:])
        del stack[start:]
        return items

    for opcode, value, _ in pickletools.genops(file):
        kind = opcode.name
        if kind in ("PROTO", "STOP"):
            continue
        if kind == "MARK":
            marks.append(len(stack))
        elif kind in _LITERALS:
            stack.append(_LITERALS[kind] if value is None else value)
        elif kind in ("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            count = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}.get(kind)
            items = since_mark() if count is None else tuple(stack[len(stack) - count :])
            del stack[len(stack) - (count or 0) :]
            stack.append(tuple(None if type(item) is tuple else item for item in items))
        elif kind in ("APPENDS", "SETITEMS"):
            since_mark()
        elif kind in ("APPEND", "BUILD"):
            stack.pop()
        elif kind == "SETITEM":
            del stack[-2:]
        elif kind == "GLOBAL":
            stack.append(_Name(str(value)))
        elif kind == "REDUCE":
            arguments = stack.pop()
            _check_call(path, stack.pop(), arguments)
            stack.append(None)
        elif kind == "BINPERSID":
            storages.add(_storage(path, stack.pop()))
            stack.append(None)
        elif kind in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif kind in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
        else:
            _refuse(path, f"opcode {kind}")
    return storages


# Where pickletools gives no value, a stand-in for what the opcode makes.
_LITERALS: dict[str, Any] = {
    **dict.fromkeys(("NONE", "NEWTRUE", "NEWFALSE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET")),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINSTRING")),
}


def _check_call(path: Path, called: Any, arguments: Any) -> None:
    name = called.name if isinstance(called, _Name) else "something that it made"
    if name not in CALLED:
        _refuse(path, name.replace(" ", "."))
    if name == "_codecs encode" and arguments[1:] != ("latin1",):
        _refuse(path, "text in an unusual encoding")


def _storage(path: Path, said: Any) -> _Storage:
    if type(said) is tuple and len(said) in (5, 6) and said[0] == "storage":
        kind = getattr(said[1], "name", "")
        size = SIZES.get(kind.rpartition(" ")[2].removesuffix("Storage"))
        if size and kind.startswith("torch") and type(said[2]) is str and type(said[4]) is int:
            return _Storage(said[2], size * said[4])
    _refuse(path, "a storage of an unknown kind")


def _refuse(path: Path, what: str) -> NoReturn:
    raise WeightsError(
        f"{path}: refused, since it holds more than tensors and plain values ({what}), or is "
        f"damaged; nothing in it was run. Ask its author for the weights alone."
    )

"""Look through a torch checkpoint before torch loads it: what it calls, and how much it declares.

torch's weights-only loader runs no code of a file's own, but it makes what the file asks for: a
pickle of 92 bytes can ask for a bytearray, or a storage, of any size. So the opcodes are walked
first, with stand-ins in place of values. Only a few functions may be called, every storage must be
as long as the bytes that the file has for it, and all that the pickle makes, counted again each
time it is taken from the memo, may cost no more than `MOST_MADE` bytes for each byte of the pickle.
"""

from __future__ import annotations

import io
import pickletools
import re
import struct
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from lcv.errors import WeightsError

MOST_PICKLE = 2**21
"""Bytes of a pickle, without its tensors, or a 20th of the file. A run of VCN's has 480 thousand."""
MOST_MADE = 64
"""Bytes of memory that a pickle may make for each of its own, beyond `FREE`. Real runs make 21."""
FREE = 2**22
CONTAINER, ITEM, CALL = 128, 64, 256
"""About what a container, an item copied by a call, and what a call makes, take in memory."""
MOST_SET = 10_000
"""Values of a set: a file can choose numbers that all have one hash, which makes a set slow."""
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


class _Made:
    """A stand-in for a container or for what a call made.

    kind: list, dict, tuple or the function;  cost: of it and all in it;  items: those of a tuple
    """

    __slots__ = ("cost", "fetched", "items", "kind", "length")

    def __init__(self, kind: str, cost: int, items: tuple[Any, ...] = ()) -> None:
        self.kind, self.cost, self.items, self.length = kind, cost, items, len(items)
        self.fetched = False


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
        _check_directory(path, archive.start_dir)
        content = archive.read(found["data.pkl"])
    for storage in scan(path, io.BytesIO(content)):
        member = found.get(f"data/{storage.key}")
        if member is None or member.file_size != storage.bytes:
            there = "none" if member is None else member.file_size
            raise WeightsError(
                f"{path}: damaged, storage {storage.key} declares {storage.bytes} bytes, but {there} "
                f"are there"
            )


def _check_directory(path: Path, start: int) -> None:
    """Refuse an archive whose directory is not where it says: zipfile takes the one before the end
    record and shifts every member, torch the one declared, so that they read different pickles."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 98))
        # Two records of zip64, where there are any, of 56 and 20 bytes, and the end record of 22.
        end = file.read().rjust(98, b"\0")
    (declared,) = struct.unpack("<I", end[-6:-2])
    sound = end[-22:-18] == b"PK\5\6"
    if end[56:60] == b"PK\6\7":
        (record,), (declared,) = struct.unpack("<Q", end[64:72]), struct.unpack("<Q", end[48:56])
        sound &= end[:4] == b"PK\6\6" and record == size - 98
    if not sound:
        raise WeightsError(
            f"{path}: its last bytes are not its end records, wanted those of an archive and "
            f"nothing after them; the file is damaged, or two archives in one"
        )
    if declared != start:
        raise WeightsError(
            f"{path}: its directory begins at byte {start}, wanted {declared}, as its end record "
            f"says; the file is damaged, or two archives in one"
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
    """The storages that the next pickle of the file names; refuses calls that are not CALLED, and
    a pickle that would make more than MOST_MADE allows."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    storages = set()
    start, made = file.tell(), 0

    def since_mark() -> tuple[Any, ...]:
        return last(len(stack) - marks.pop())

    def last(count: int) -> tuple[Any, ...]:
        at = len(stack) - count
        items = tuple(stack[at:])
        del stack[at:]
        return items

    def fill(items: tuple[Any, ...], length: int) -> None:
        # What was fetched may already be counted elsewhere, as it was.
        if not isinstance(stack[-1], _Made) or stack[-1].fetched:
            _refuse(path, "a list or dict that is filled after it was used")
        stack[-1].length += length
        stack[-1].cost += sum(map(_cost, items))

    for opcode, value, _ in pickletools.genops(file):
        kind = opcode.name
        made += _COSTS.get(kind, 0)
        if kind in ("PROTO", "STOP"):
            continue
        if kind == "MARK":
            marks.append(len(stack))
        elif kind in _CONTAINERS:
            stack.append(_Made(_CONTAINERS[kind], CONTAINER))
        elif kind in _LITERALS:
            stack.append(value)
            made += _cost(value)
        elif kind in _TUPLES:
            count = _TUPLES[kind]
            items = since_mark() if count is None else last(count)
            cost = sum(map(_cost, items), CONTAINER if items else 0)
            stack.append(_Made("tuple", cost, items))
        elif kind in ("APPENDS", "APPEND", "SETITEMS", "SETITEM"):
            items = since_mark() if kind[-1] == "S" else last(2 if kind == "SETITEM" else 1)
            if kind.startswith("SET"):
                _check_keys(path, items[::2])
            fill(items, len(items))
        elif kind == "GLOBAL":
            stack.append(_Name(str(value)))
        elif kind == "BUILD":
            (state,) = last(1)
            if getattr(stack[-1], "kind", "") != "collections OrderedDict":
                _refuse(path, "attributes of something else than an OrderedDict")
            fill((state,), 0)
            made += ITEM * _length(state)
        elif kind == "REDUCE":
            called, arguments = last(2)
            name = _check_call(path, called, arguments)
            copied = ITEM * sum(map(_length, arguments.items))
            made += copied
            stack.append(_Made(name, CALL + copied + arguments.cost))
            stack[-1].length = sum(map(_length, arguments.items))
        elif kind == "BINPERSID":
            storages.add(_storage(path, stack.pop()))
            stack.append(None)
        elif kind in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif kind in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
            made += _cost(memo[value])
            if isinstance(memo[value], _Made):
                memo[value].fetched = True
        else:
            _refuse(path, f"opcode {kind}")
        read = file.tell() - start
        if made > FREE + MOST_MADE * read:
            raise WeightsError(
                f"{path}: refused, the first {read} bytes of its pickle would make {made} in "
                f"memory, wanted at most {FREE + MOST_MADE * read}; no checkpoint needs as many"
            )
    return storages


_CONTAINERS = {"EMPTY_LIST": "list", "EMPTY_DICT": "dict"}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "TUPLE": None}
_LITERALS = {
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINSTRING"),
}
_COSTS = {
    **dict.fromkeys((*_CONTAINERS, *_TUPLES, "MARK", "SETITEM", "SETITEMS", "BUILD"), CONTAINER),
    "EMPTY_TUPLE": 0,
    "REDUCE": CALL,
}


# A tensor could be iterated over, too, and would make a tensor of each of its numbers.
_GIVEN: dict[str, tuple[str, ...]] = {
    "collections OrderedDict": (),
    "torch Size": ("tuple",),
    "builtins set": ("list",),
    "__builtin__ set": ("list",),
}


def _check_keys(path: Path, keys: tuple[Any, ...]) -> None:
    """Refuse keys that a file can choose so that all have one hash, which makes a dict slow."""
    for key in keys:
        if isinstance(key, _Made) or (isinstance(key, int) and abs(key) >= 2**61 - 1):
            _refuse(path, "a dict with keys other than text and numbers of 60 bits")


def _cost(value: Any) -> int:
    if isinstance(value, _Made):
        return value.cost
    return 8 + (len(value) if isinstance(value, str) else 0)


def _length(value: Any) -> int:
    return value.length if isinstance(value, _Made) else 0


def _check_call(path: Path, called: Any, arguments: Any) -> str:
    name = called.name if isinstance(called, _Name) else "something that it made"
    if name not in CALLED or getattr(arguments, "kind", "") != "tuple":
        _refuse(path, name.replace(" ", "."))
    if name == "_codecs encode" and arguments.items[1:] != ("latin1",):
        _refuse(path, "text in an unusual encoding")
    given = tuple(getattr(item, "kind", "number") for item in arguments.items)
    if given != _GIVEN.get(name, given):
        _refuse(path, f"{name.replace(' ', '.')} of an unusual kind of value")
    if name.endswith(" set") and _length(arguments.items[0]) > MOST_SET:
        _refuse(path, f"a set of more than {MOST_SET} values")
    return str(name)


def _storage(path: Path, said: Any) -> _Storage:
    said = getattr(said, "items", ())
    if len(said) in (5, 6) and said[0] == "storage":
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

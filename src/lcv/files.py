"""Files that appear whole or not at all, and never in place of another unasked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import reprlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lcv.errors import FileError

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What a file system answers that knows no locks, as some of a cluster do not."""


class Busy(FileError):
    """Another process holds the lock."""


@contextmanager
def whole_file(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """A temporary name beside `path`; renamed to it when the block ends well, removed otherwise.

    with whole_file("flow.flo") as temporary:
        temporary.write_bytes(content)
    """
    path = Path(path)
    check_output(path, overwrite)
    temporary = _new_file_beside(path)
    try:
        yield temporary
        _publish(temporary, path, overwrite)
    except OSError as error:
        raise FileError(f"{path}: writing failed, nothing was left behind: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, overwrite: bool = False) -> None:
    """A whole file of text in UTF-8."""
    with whole_file(path, overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


SMALL = 1_000_000
"""The most bytes that a card or a configuration may have; real ones have a few thousand."""
LARGE = 100_000_000
"""The most bytes that a result may have; real ones have a few million."""


def load_json(path: Path, wanted: str, most: int) -> Any:
    """What a file of JSON holds. wanted: what it should be; most: the bytes it may have"""
    try:
        if path.exists() and not path.is_file():  # reading a pipe can wait for ever
            raise OSError("it is not an ordinary file")
        if path.stat().st_size > most:
            raise FileError(f"{path}: is larger than {most:,} bytes; wanted {wanted}")
        content = path.read_bytes()
        if _is_bomb(content):
            raise FileError(f"{path}: holds too many values for its size; wanted {wanted}")
        return json.loads(content.decode())
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {_reason(error)}") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path}: is not JSON; wanted {wanted}") from None


def read_json(
    path: Path, wanted: str, version: str | None = None, most: int = LARGE
) -> dict[str, Any]:
    """The same of a file with names and values. version: its "format" """
    said = load_json(path, wanted, most)
    if not isinstance(said, dict):
        raise FileError(f"{path}: holds a {type(said).__name__}; wanted {wanted}")
    if version is not None and said.get("format") != version:
        found = reprlib.repr(said.get("format"))
        raise FileError(f"{path}: its format is {found}, not {version!r}; wanted {wanted}")
    return said


def _is_bomb(content: bytes) -> bool:
    """Whether JSON could take far more memory than the file does: up to 100 bytes for each mark.

    Our own files have more than 6 bytes to a mark, however large they are.
    """
    marks = sum(map(content.count, (b"{", b"[", b":", b",")))
    return marks > max(1_300_000, len(content) / 6)


def check_output(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse an output that exists (unless told otherwise) or that has no folder to be in."""
    path = Path(path)
    try:
        # Not `exists`, which takes a link to nothing, and a name too long, for a free place.
        taken = path.lstat() is not None
    except (FileNotFoundError, NotADirectoryError):
        taken = False
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot write here: {_reason(error)}") from None
    if path.is_dir():
        raise FileError(f"{path}: this is a folder, wanted the name of a file to write")
    if taken and not overwrite:
        ways = "choose another name or use --overwrite (in Python overwrite=True)"
        raise FileError(f"{path}: exists already; {ways}")
    if not path.parent.is_dir():
        nearest = next((folder for folder in path.parents if folder.exists()), path.parent)
        if nearest.exists() and not nearest.is_dir():
            raise FileError(f"{path}: {nearest} is a file, wanted a folder to write into")
        raise FileError(f"{path}: the folder {path.parent} does not exist; make it first")


def check_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse an output that is one of the inputs, by whatever name."""
    read = {where: path for path in inputs if (where := _inode(path)) is not None}
    for path in outputs:
        where = _inode(path)
        if where is not None and where in read:
            raise FileError(
                f"{path}: is the input {read[where]} itself, and inputs are never written to; "
                f"choose another name with -o"
            )


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def check_writable(path: Path, folder: Path) -> None:
    """Refuse, before any work is done, a folder where nothing can be written."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{path}: {folder} is a file, wanted a folder to write into")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{path}: the folder {folder} may not be written to; choose another place")


def create_once(path: Path, content: str) -> str:
    """Create a file that never changes; returns what is in it, or in the one that was there first.

    Sweep its temporary files only once it exists.
    """
    try:
        with whole_file(path) as temporary:
            temporary.write_text(content, encoding="utf-8")
    except FileError:
        if not path.is_file():
            raise
        return path.read_text(encoding="utf-8")
    return content


def refuse_link(path: Path) -> None:
    """Refuse a link where a file or folder of our own should be: it may lead anywhere."""
    if path.is_symlink():
        raise FileError(f"{path}: is a link, which is not followed here; remove it")


def sweep(paths: Iterable[Path]) -> None:
    """Remove what killed runs left half-written for these files; each folder is read once."""
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(temporary_stem(path.name))
    for folder, own in names.items():
        for left in folder.glob(".*.part"):
            if left.name[1:].rsplit(".", 2)[0] in own:
                left.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """The folder and those above it, where they are not there yet."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: is a file, wanted a folder to write into")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: this folder cannot be made: {error.strerror}") from None


@contextmanager
def only_one(path: Path, busy: str | None = None) -> Iterator[None]:
    """While the block runs, whoever else wants `path` waits, in this process or another.

    busy: where waiting would make no sense, what to say to who comes second (a `Busy`)
    The lock is a file `path`.lock, gone afterwards, and the system's own: it ends with its holder,
    however that ends. Where the system has no such locks (Windows), nobody waits.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = path.with_name(f"{path.name}.lock")
    while True:
        try:
            handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        except OSError as error:
            raise FileError(f"{lock}: cannot be made and locked: {_reason(error)}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if busy is None else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in NO_LOCKS:
                break
            os.close(handle)
            if busy is not None and isinstance(error, BlockingIOError):
                raise Busy(busy) from None
            raise FileError(f"{lock}: cannot be made and locked: {_reason(error)}") from None
        # Its last holder removes the file, so what was waited for may be a file without a name.
        if os.fstat(handle).st_nlink:
            break
        os.close(handle)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def temporary_stem(name: str) -> str:
    """What the temporary of a file begins with, after its dot; that of no other file.

    Shortened, so that a name that just fits has a temporary that fits too.
    """
    if len(name) <= 40:
        return name
    return f"{name[:31]}~{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


def _new_file_beside(path: Path) -> Path:
    """An empty file of a name nobody has, with the rights that the system gives any new file."""
    temporary = path.with_name(f".{temporary_stem(path.name)}.{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise FileError(f"{path}: cannot write here: {_reason(error)}") from None
    return temporary


def _publish(temporary: Path, path: Path, overwrite: bool) -> None:
    if not overwrite:
        try:
            # A link, unlike a renaming, is refused if the target has appeared meanwhile.
            os.link(temporary, path)
            return
        except FileExistsError:
            raise FileError(
                f"{path}: exists already, it appeared while this was written; choose another name "
                f"or use --overwrite"
            ) from None
        except OSError:  # a file system without links
            check_output(path)
    temporary.replace(path)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

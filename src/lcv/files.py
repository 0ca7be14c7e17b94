"""Files that appear whole or not at all, and never in place of another unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcv.errors import FileError


@contextmanager
def whole_file(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """A temporary name beside `path`; renamed to it when the block ends well, removed otherwise.

    with whole_file("flow.flo") as temporary:
        temporary.write_bytes(content)
    """
    path = Path(path)
    check_output(path, overwrite)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise FileError(f"{path}: cannot write here: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files for the owner alone; outputs get the rights of any new file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        check_output(path, overwrite)
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{path}: writing failed, nothing was left behind: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_output(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse an output that exists (unless told otherwise) or that has no folder to be in."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path}: this is a folder, wanted the name of a file to write")
    if path.exists() and not overwrite:
        raise FileError(f"{path}: exists already; choose another name or say --overwrite")
    if not path.parent.is_dir():
        raise FileError(f"{path}: the folder {path.parent} does not exist; make it first")

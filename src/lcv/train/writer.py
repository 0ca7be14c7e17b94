"""One run writes a folder at a time; a second one is told so before it has done anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lcv.errors import FileError
from lcv.files import make_folder, only_one
from lcv.train.distributed import Processes


@contextmanager
def writer(run: str, processes: Processes) -> Iterator[None]:
    """While the block runs, no other run can write the folder.

    Of several processes the first one writes, and holds the lock; it ends with that process,
    however it ends. Folders that were made for this and stayed empty go again.
    """
    folder = Path(run)
    busy = f"{folder}: another run is writing here; wait for it, or choose another --folder"
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    with ExitStack() as stack:
        refused: FileError | None = None
        if processes.is_first:
            try:
                make_folder(folder)
                stack.callback(_remove_empty, new)
                stack.enter_context(only_one(folder / "run", busy))
            except FileError as error:
                refused = error
        # All or none: the others would wait for the first one for ever.
        if processes.any(refused is not None):
            raise refused or FileError(busy)
        yield


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):  # of one that is not empty, nor are those above it
        for folder in folders:
            folder.rmdir()

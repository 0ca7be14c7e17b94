"""Files of results: a folder for each open page and purpose, with only what it shows now."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import numpy as np

from lcv.data.formats.image import write_image
from lcv.demo.gate import FILE


class Store:
    """folder: the only one whose files the page's server gives out"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[tuple[str, str], Path] = {}

    def fresh(self, session: str, purpose: str) -> Path:
        """An empty folder; what the page had for this purpose before is deleted."""
        self._delete(session, purpose)
        made = Path(tempfile.mkdtemp(prefix="shown-", dir=self.folder))
        self._kept[session, purpose] = made
        return made

    def forget(self, session: str) -> None:
        """Delete all that a page has shown."""
        for kept, purpose in list(self._kept):
            if kept == session:
                self._delete(session, purpose)

    def _delete(self, session: str, purpose: str) -> None:
        before = self._kept.pop((session, purpose), None)
        if before is not None:
            shutil.rmtree(before, ignore_errors=True)


def save_picture(folder: Path, name: str, picture: np.ndarray) -> str:
    """Write a picture as a PNG, and return its address."""
    path = folder / f"{name}.png"
    write_image(path, picture)
    return address(path)


def address(path: Path) -> str:
    """Where the browser finds a file of the folder."""
    return FILE + quote(str(path))

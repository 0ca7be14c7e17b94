"""What a run says: one JSON object a line, always; and to whoever listens (a console, TensorBoard)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lcv.files import write_text

if TYPE_CHECKING:
    import numpy as np


class Listener(Protocol):
    """Something that shows a run: the verb's progress bar, or TensorBoard."""

    def __call__(self, entry: dict[str, Any]) -> None: ...


@runtime_checkable
class Viewer(Protocol):
    """A listener that shows pictures, (H, W, 3) uint8, too."""

    def picture(self, name: str, step: int, picture: np.ndarray) -> None: ...


class Log:
    """The file log.jsonl of a run, and its listeners. Entries have `kind`, `step` and `time`."""

    def __init__(self, path: Path, first_step: int, listeners: tuple[Listener, ...] = ()) -> None:
        self.path, self.listeners = path, listeners
        self.viewers = [listener for listener in listeners if isinstance(listener, Viewer)]
        if path.exists():
            self._forget_from(first_step)

    def write(self, kind: str, step: int, **values: Any) -> None:
        entry = {"kind": kind, "step": step, "time": round(time.time(), 1), **values}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for listener in self.listeners:
            listener(entry)

    def picture(self, name: str, step: int, picture: np.ndarray) -> None:
        """For those who show pictures; nothing is kept of it here."""
        for viewer in self.viewers:
            viewer.picture(name, step, picture)

    def _forget_from(self, step: int) -> None:
        """Drop what a killed run wrote after the checkpoint that we go on from."""
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue  # a line cut by a kill
            if entry["step"] <= step:
                kept.append(line + "\n")
        write_text(self.path, "".join(kept), overwrite=True)


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The entries of a run's log."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]

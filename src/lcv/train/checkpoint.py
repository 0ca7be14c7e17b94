"""Checkpoints that hold everything, appear whole or not at all, and resume to the bit.

A run's folder has checkpoints/last.pt, previous.pt (the one before), best.pt and, if asked for,
step-N.pt. A save is written to a temporary name, flushed to the disk and renamed, so a kill at any
moment leaves the last or the one before it intact.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lcv.errors import FileError, LcvError
from lcv.files import whole_file, write_text
from lcv.models.archive import read_torch_content


@dataclass
class Position:
    """Where a run stands besides its tensors: steps taken, and the best validation so far."""

    step: int
    best: float | None = None


class Folder:
    """The checkpoints of one run."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self.run = Path(run)
        self.checkpoints = self.run / "checkpoints"

    def prepare(self, config: dict[str, Any]) -> None:
        """Make the folders and put the resolved configuration beside the checkpoints."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        text = json.dumps(config, indent=2) + "\n"
        write_text(self.run / "config.json", text, overwrite=True)
        for leftover in self.checkpoints.glob(".*.part"):
            leftover.unlink(missing_ok=True)

    def has(self, checkpoint: str | os.PathLike[str]) -> bool:
        """Whether this is the path of a checkpoint of this run, and not of another."""
        return Path(checkpoint).parent.resolve() == self.checkpoints.resolve()

    def save(self, content: dict[str, Any], *names: str) -> None:
        """Write the content once as `last`, and again under the other names."""
        last, previous = self.path("last"), self.path("previous")
        try:
            fresh = last.with_suffix(".new")
            with whole_file(fresh, overwrite=True) as temporary, temporary.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            for name in names:
                _link(fresh, self.path(name))
            if last.exists():
                last.replace(previous)
            fresh.replace(last)
        except (OSError, RuntimeError, FileError) as error:
            raise FileError(
                f"{last}: saving failed ({error}); the checkpoint before it is intact. Make room "
                f"and resume."
            ) from error

    def path(self, name: str) -> Path:
        return self.checkpoints / f"{name}.pt"

    def newest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest checkpoint that is whole, and its content; None if there is none."""
        refused = []
        for name in ("last.new", "last.pt", "previous.pt"):
            path = self.checkpoints / name
            if not path.exists():
                continue
            try:
                return path, read(path)
            except LcvError as error:
                refused.append(str(error))
        if refused:
            raise FileError("no checkpoint of this run can be read: " + "; ".join(refused))
        return None


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a checkpoint of ours, its checksums verified."""
    content = read_torch_content(Path(path))
    if not isinstance(content, dict) or content.get("format") != "lcv training 1":
        raise FileError(f"{path}: not a checkpoint of a training run of ours")
    return content


def _link(source: Path, target: Path) -> None:
    """The same file under another name; a copy where links are not possible."""
    temporary = target.with_suffix(".link")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        temporary.write_bytes(source.read_bytes())
    temporary.replace(target)

"""A job's own file, OUT/job.json: what its outputs were made with, so that jobs are never mixed.

It holds the settings that decide numbers (with the hash of the weights), how each size of frame is
computed, and of each sequence what tells it apart, its number of frames once that is known, and
the scale of its pictures. Nothing in it depends on when or where a run was made: a run that was
broken off and taken up again ends with the same file as one that was not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from lcv.errors import FileError
from lcv.files import only_one, whole_file
from lcv.predict.outputs import CLIPS, ENDINGS, KINDS, make_folder, sweep

NAME = "job.json"
ANEW = "Choose another folder with -o, or say --overwrite to begin anew."


class Manifest:
    """The file of one output folder; made at the first `change`, so that a failed start leaves none."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.path = root / NAME
        self.settings = settings
        self.content: dict[str, Any] = {"settings": settings, "plans": {}, "sequences": {}}
        self._anew = False

    def open(self, overwrite: bool) -> None:
        """Take up the folder's job; refuse what is another's, unless it may be overwritten."""
        there = self._read()
        if there is None:
            self._check_nothing_else(overwrite)
        elif there.get("settings") == self.settings:
            self.content = there
        elif not overwrite:
            raise FileError(f"{self.path.parent}: {self._difference(there)}. {ANEW}")
        else:
            self._anew = True

    def sequence(self, name: str) -> dict[str, Any]:
        """What is known of a sequence."""
        return dict(self.content["sequences"].get(name, {}))

    def admit(self, name: str, fingerprints: list[str]) -> None:
        """Refuse a sequence whose name another has here."""
        known = self.sequence(name).get("fingerprints", [])
        if known and fingerprints and not set(known) & set(fingerprints):
            raise FileError(
                f"{self.path.parent}: already has outputs of another input that is called "
                f"{name!r}, or this one has been changed since. {ANEW}"
            )

    def note(self, name: str, **facts: Any) -> dict[str, Any]:
        """Add what is known of a sequence now, unless another process was first; returns all."""

        def add(content: dict[str, Any]) -> None:
            known = content["sequences"].get(name, {})
            content["sequences"][name] = {**facts, **known}

        if any(self.sequence(name).get(key) != value for key, value in facts.items()):
            self.change(add)
        return self.sequence(name)

    def forget(self, *names: str) -> None:
        """Nothing is known of sequences any more: they are begun anew."""
        known = [name for name in names if name in self.content["sequences"]]
        if known:
            self.change(lambda content: [content["sequences"].pop(n, None) for n in known])

    def change(self, how: Callable[[dict[str, Any]], Any]) -> None:
        """Read, change and write the file as one step among all processes of the job."""
        make_folder(self.path.parent)
        with only_one(self.path):
            sweep(self.path)
            there = self._read()
            if there is not None and there.get("settings") == self.settings:
                self.content = there
            elif self._anew:
                # Before the new settings are written, so that no old file is ever taken for new.
                self._remove_outputs()
            elif there is not None:
                raise FileError(f"{self.path.parent}: {self._difference(there)}. {ANEW}")
            self._anew = False
            how(self.content)
            text = json.dumps(self.content, indent=2, sort_keys=True, ensure_ascii=False)
            with whole_file(self.path, overwrite=True) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")

    def _read(self) -> dict[str, Any] | None:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{self.path}: cannot be read: {error}") from None
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        return content if _is_sound(content) else {"settings": None, "plans": {}, "sequences": {}}

    def _difference(self, there: dict[str, Any]) -> str:
        settings = there.get("settings")
        if not isinstance(settings, dict):
            return f"its {NAME} is damaged, so that nobody knows what the files here were made with"
        for name in sorted({*settings, *self.settings}):
            found, wanted = settings.get(name), self.settings.get(name)
            if found != wanted:
                return (
                    f"holds the outputs of another job: there {name} is {_short(found)}, here "
                    f"{_short(wanted)}"
                )
        return "holds the outputs of another job"

    def _check_nothing_else(self, overwrite: bool) -> None:
        if overwrite:
            return
        for kind in (*KINDS, CLIPS):
            folder = self.path.parent / kind
            if folder.is_dir() and any(folder.iterdir()):
                raise FileError(
                    f"{folder}: exists already and is not empty, but {self.path.parent} has no "
                    f"{NAME} that says what is in it. {ANEW}"
                )

    def _remove_outputs(self) -> None:
        """The files of a job that is begun anew with other settings; whatever else is there stays."""
        endings = {*ENDINGS.values(), ".mp4"}
        for kind in (*KINDS, CLIPS):
            for path in (self.path.parent / kind).rglob("*"):
                if path.suffix in endings and path.is_file():
                    path.unlink(missing_ok=True)


def weights_hash(model: nn.Module) -> str:
    """A hash of all numbers of a network with their names: the same wherever its file lies."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        array = value.detach().cpu().contiguous()
        digest.update(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
        digest.update(array.view(-1).numpy().tobytes())
    return digest.hexdigest()


def _is_sound(content: Any) -> bool:
    """Whether a job's file has what it is asked for; people edit text files."""
    if not isinstance(content, dict) or not isinstance(content.get("settings"), dict):
        return False
    plans, sequences = content.get("plans"), content.get("sequences")
    if not isinstance(plans, dict) or not isinstance(sequences, dict):
        return False
    return all(isinstance(s, dict) for s in sequences.values()) and all(
        isinstance(plan, dict) and {"strategy", "tiling"} <= set(plan) for plan in plans.values()
    )


def _short(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"

"""A job's own file, OUT/job.json: what its outputs were made with, so that jobs are never mixed.

It holds the settings that decide numbers (with the hash of the weights), and how each size of frame
is computed. What is known of a sequence is in its own record, see `lcv.predict.records`. Nothing in
it depends on when or where a run was made: a run that was broken off and taken up again ends
with the same file as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.files import only_one, whole_file
from lcv.predict.outputs import CLIPS, KINDS, make_folder, sweep
from lcv.predict.settings import combined, difference

NAME = "job.json"
# The folder of what is known of sequences, and the name of the file for those that have none.
RECORDS = "made"
OR_ANEW = "Choose another folder with -o, or say --overwrite to begin anew."


class Manifest:
    """The file of one output folder; made at the first `change`, so that a failed start leaves none."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.path = root / NAME
        self.settings = settings
        self.content: dict[str, Any] = {"settings": settings, "plans": {}}
        self._anew = self._is_adopted = False

    def open(self, overwrite: bool) -> None:
        """Take up the folder's job; refuse what is another's, unless it may be overwritten."""
        there = self._read_drawn()
        if there is None:
            self._check_nothing_else(overwrite)
        elif self._agrees(there):
            self.content = there
        elif not overwrite:
            raise FileError(f"{self.path.parent}: {self._difference(there)}. {OR_ANEW}")
        else:
            self._anew = True

    def adopt(self) -> None:
        """Let the job draw, from now on, at the scale of this run, if nothing is drawn yet; done once.

        Before any record tells of a picture: by then another scale is another job.
        """
        if self._is_adopted:
            return
        self._is_adopted = True
        there, drawn = self._read(), self._read_drawn()
        settings = None if drawn is None else drawn["settings"]
        if there is None or there["settings"] != combined(settings or {}, self.settings):
            self.change(lambda content: None)

    def change(self, how: Callable[[dict[str, Any]], Any]) -> None:
        """Read, change and write the file as one step among all processes of the job."""
        make_folder(self.path.parent)
        with only_one(self.path):
            sweep(self.path)
            there = self._read_drawn()
            if there is not None and self._agrees(there):
                settings = combined(there["settings"], self.settings)
                self.content = {**there, "settings": settings}
            elif there is not None and not self._anew:
                raise FileError(f"{self.path.parent}: {self._difference(there)}. {OR_ANEW}")
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
        if not _is_sound(content):
            return {"settings": None, "plans": {}}
        return {"settings": content["settings"], "plans": content["plans"]}

    def _read_drawn(self) -> dict[str, Any] | None:
        """What the file says, without the scale of pictures that are gone."""
        there = self._read()
        scale = None if there is None else (there["settings"] or {}).get("scale")
        if there is None or scale in (None, self.settings["scale"]) or self._is_drawn():
            return there
        return {**there, "settings": {**there["settings"], "scale": None}}

    def _is_drawn(self) -> bool:
        """Whether any record tells of pictures; one that cannot be read may."""
        root = self.path.parent
        return any(
            _draws(path) for path in (root / f"{RECORDS}.json", *(root / RECORDS).rglob("*.json"))
        )

    def _agrees(self, there: dict[str, Any]) -> bool:
        settings = there.get("settings")
        return isinstance(settings, dict) and difference(settings, self.settings) is None

    def _difference(self, there: dict[str, Any]) -> str:
        settings = there.get("settings")
        if not isinstance(settings, dict):
            return f"its {NAME} is damaged, so that nobody knows what the files here were made with"
        return f"holds the outputs of another job: {difference(settings, self.settings)}"

    def _check_nothing_else(self, overwrite: bool) -> None:
        if overwrite:
            return
        for kind in (*KINDS, CLIPS):
            folder = self.path.parent / kind
            if folder.is_dir() and any(folder.iterdir()):
                raise FileError(
                    f"{folder}: exists already and is not empty, but {self.path.parent} has no "
                    f"{NAME} that says what is in it. {OR_ANEW}"
                )


def _draws(record: Path) -> bool:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        return content["settings"]["scale"] is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True


def _is_sound(content: Any) -> bool:
    """Whether a job's file has what it is asked for; people edit text files."""
    if not isinstance(content, dict) or not isinstance(content.get("settings"), dict):
        return False
    plans = content.get("plans")
    return isinstance(plans, dict) and all(
        isinstance(plan, dict) and {"strategy", "tiling"} <= set(plan) for plan in plans.values()
    )

"""A job's folder: what its outputs are made with, and which of them are done.

    OUT/job.json             every setting that decides numbers; created once, never changed
    OUT/strategy/WxH.json    how frames of a size are computed; the first one wins
    OUT/scale/SEQUENCE.json  the scale of a sequence's pictures; the first one wins
    OUT/done/WORKER.jsonl    a line for every pair, see `lcv.predict.done_log`
    OUT/flow/ …              the outputs, see `lcv.predict.outputs`

Nothing is locked and nothing is changed in place. These folders belong to the job: a file in them
that no line lists was left by a killed run, and is replaced. Links in them are never followed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.files import SMALL, check_writable, create_once, load_json, make_folder, refuse_link, sweep
from lcv.predict.done_log import DoneLog, Files, Identity, size_of
from lcv.predict.matching import Wanted
from lcv.predict.memory import Plan, Planner
from lcv.predict.outputs import KINDS, LOW, Output
from lcv.predict.sources import Sequence, title

NAME, CLIP = "job.json", "clip"
# The folders that belong to a job; the log goes first when it is overwritten.
OWN = ("done", *KINDS, CLIP, "scale", "strategy")
OR_OVERWRITE = "Choose another folder with -o, or use --overwrite to start over."


class JobFolder:
    """The folder of one job, as one worker sees it; `open` it before anything else."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.root, self.settings = root, settings
        self.log, self.files = DoneLog(root / "done"), Files()
        self._is_created = False

    def open(self, overwrite: bool, inputs: Iterable[Path]) -> None:
        """Resume the job in this folder, or refuse it; with `overwrite` empty its folders first."""
        nearest = next(p for p in (self.root, *self.root.absolute().parents) if p.exists())
        check_writable(self.root, nearest)
        for name in (NAME, *OWN):
            refuse_link(self.root / name)
        self._check_inputs(inputs)
        folders = [self.root / name for name in OWN if (self.root / name).exists()]
        filled = [each for each in folders if not each.is_dir() or any(each.iterdir())]
        # Looked for after the folders: another worker makes it before them.
        if not (self.root / NAME).exists():
            if filled:
                raise FileError(
                    f"{filled[0]}: is not empty, and {self.root} has no {NAME} that says what made "
                    f"it; choose another folder with -o"
                )
        elif overwrite:
            self._empty()
        else:
            self._check_settings()
            decided = (self.root / kind for kind in ("scale", "strategy"))
            self.sweep([self.root / NAME, *(f for each in decided for f in each.rglob("*.json"))])
            self.log.read()
            self.log.run += max((entry.run for entry in self.log.entries.values()), default=0)

    def is_done(self, sequence: Sequence, pair: int, outputs: Iterable[Output]) -> bool:
        """Whether the log lists these outputs with their present sizes, made from the present files."""
        files = self._files_of(sequence, pair)
        paths = [self.path(each, sequence, pair) for each in outputs]
        return all(
            (entry := self.log.entries.get(self._name(path))) is not None
            and size_of(path) == entry.size
            and len(files) == len(entry.made_from)
            and all(map(self.files.is_unchanged, files, entry.made_from))
            for path in paths
        )

    def identities(self, sequence: Sequence, pair: int) -> list[Identity]:
        """Of the files that a pair is computed from; to be called before they are read."""
        return [self.files.identity(file) for file in self._files_of(sequence, pair)]

    def check_same_input(self, sequence: Sequence) -> None:
        """Refuse a sequence of which the job has outputs, but all frames have changed."""
        pairs = range((sequence.length or 1) - 1)
        names = [(sequence.name, sequence.pair_name(pair)) for pair in pairs]
        known = [self.log.pairs.get(name) for name in names]
        if len(sequence.files) == 1:  # a video, of which other pairs may be known
            known += [made for (name, _), made in self.log.pairs.items() if name == sequence.name]
        for pair, made_from in enumerate(known):
            frames = self._files_of(sequence, pair)[:2]
            if made_from and any(map(self.files.is_unchanged, frames, made_from)):
                return
        has_name = sequence.name and any(name == sequence.name for name, _ in self.log.pairs)
        if has_name or any(made_from is not None for made_from in known):
            why = "it cannot be read again" if sequence.is_live else "all frames have changed"
            raise FileError(
                f"{self.root}: already has outputs of another input that is called "
                f"{title(sequence)!r}: {why}. {OR_OVERWRITE}"
            )

    def path(self, output: Output, sequence: Sequence, pair: int) -> Path:
        """Where an output of a pair lies."""
        name = f"{sequence.pair_name(pair)}{output.ending}"
        return self.root / output.kind / sequence.name / name

    def clip_path(self, sequence: Sequence) -> Path:
        """Where the clip of a sequence lies."""
        return self.root / CLIP / f"{title(sequence)}.mp4"

    def prepare(self, path: Path) -> Path:
        """A place in the folder to write to: the job created, its folders made, none a link."""
        if not self._is_created:
            make_folder(self.root)
            text = json.dumps(self.settings, indent=1, sort_keys=True) + "\n"
            create_once(self.root / NAME, text)
            self._check_settings()
            self._is_created = True
        self._check_links(path)
        make_folder(path.parent)
        return path

    def sweep(self, paths: Iterable[Path]) -> None:
        """Remove what killed runs left half-written for these files."""
        paths = [*paths]
        for folder in {path.parent for path in paths}:
            self._check_links(folder)
        sweep(paths)

    def remove(self, path: Path) -> None:
        """Remove an output."""
        self._check_links(path)
        path.unlink(missing_ok=True)

    def record(
        self, sequence: Sequence, outputs: Iterable[Path], pair: int | None = None, **more: Any
    ) -> None:
        """Append a line on outputs that are in place, those of a pair by its number."""
        sizes = {}
        for path in outputs:
            sizes[self._name(path)] = path.stat().st_size
            self.files.forget(path)
        self.prepare(self.log.own)
        if pair is None:
            self.log.append(sizes, sequence.name, **more)
        else:
            files, name = self.identities(sequence, pair), sequence.pair_name(pair)
            self.log.append(sizes, sequence.name, name, files, **more)

    def kept(self, kind: str, name: str) -> Any:
        """What a worker has decided for all, a "strategy" or a "scale"; None if none has."""
        path = self.root / kind / f"{name}.json"
        self._check_links(path)
        return _content(path) if path.exists() else None

    def keep(self, kind: str, name: str, value: Any) -> Any:
        """Decide something for all workers; returns what the first one decided."""
        path = self.prepare(self.root / kind / f"{name}.json")
        create_once(path, json.dumps(value) + "\n")
        return _content(path)

    def plan(self, kept: Any, height: int, width: int, planner: Planner, wanted: Wanted) -> Plan:
        """The job's stored plan for a size, which the planner uses from now on."""
        try:
            plan = planner.from_json(kept, height, width)
        except (KeyError, TypeError, ValueError):
            where = self.root / "strategy" / f"{width}x{height}.json"
            raise FileError(f"{where}: holds no usable strategy. {OR_OVERWRITE}") from None
        # More may be wanted now than when it was stored.
        needed = planner.peak(plan.strategy, (height, width), wanted, plan.tiling)
        is_too_much = planner.limit is not None and (needed or 0) > planner.limit
        if is_too_much or planner.strategy not in ("auto", plan.strategy):
            known = replace(plan, bytes=needed or plan.bytes, limit=None, tiling=None).text
            raise FileError(
                f"{self.root}: was started with {known}; --strategy or --max-memory now rules that "
                f"out. Use the earlier options, or choose another folder with -o"
            )
        planner.keep(plan)
        return replace(plan, bytes=needed or plan.bytes)

    def stamp(self, sequence: Sequence, pairs: Iterable[int], *how: Any) -> str:
        """A hash of everything that a clip shows. how: its scale, and whether it has arrows"""
        made_from = [(pair, self.identities(sequence, pair)) for pair in pairs]
        shown = [(sequence.pair_name(pair), [f.sha256 for f in files]) for pair, files in made_from]
        text = json.dumps([self.settings, how, shown], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def has_clip(self, sequence: Sequence, stamp: str) -> bool:
        """Whether the log lists the clip with its present size and this stamp."""
        path = self.clip_path(sequence)
        entry = self.log.entries.get(self._name(path))
        return entry is not None and entry.stamp == stamp and size_of(path) == entry.size

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _files_of(self, sequence: Sequence, pair: int) -> list[Path]:
        """The files that a pair is computed from: its frames; with a warm start, the low flow before."""
        files = [file for i in (pair, pair + 1) if (file := sequence.file_of(i)) is not None]
        if self.settings["warm_start"] and pair > 0:
            low = self.path(LOW, sequence, pair - 1)
            files += [low] if size_of(low) is not None else []
        return files

    def _empty(self) -> None:
        self._settings_there()
        try:
            for folder in (self.root / name for name in OWN):
                if folder.exists():
                    shutil.rmtree(folder)
            (self.root / NAME).unlink()
        except OSError as error:
            raise FileError(f"{self.root}: cannot be emptied: {error}") from None

    def _check_links(self, path: Path) -> None:
        for part in (path, *path.parents):
            if part == self.root:
                return
            refuse_link(part)

    def _check_inputs(self, inputs: Iterable[Path]) -> None:
        """Refuse inputs that lie in the job's own folders."""
        own = {(self.root / name).resolve(): self.root / name for name in OWN}
        found = {path.parent.resolve(): path for path in inputs}
        found |= {path.resolve().parent: path for path in inputs if path.is_symlink()}
        for folder, path in found.items():
            for above in {folder, *folder.parents} & own.keys():
                raise FileError(
                    f"{own[above]}: has the input {path} in it, and inputs are never written to; "
                    f"choose another folder with -o"
                )

    def _settings_there(self) -> dict[str, Any]:
        found = _content(self.root / NAME)
        if isinstance(found, dict) and "lcv" in found:
            return found
        raise FileError(f"{self.root / NAME}: is not from lcv; choose another folder with -o")

    def _check_settings(self) -> None:
        found, wanted = self._settings_there(), self.settings
        for name in sorted({*found, *wanted}):
            if found.get(name) != wanted.get(name):
                values = (str(each.get(name)) for each in (found, wanted))
                then, now = (value if len(value) <= 24 else f"{value[:12]}…" for value in values)
                raise FileError(
                    f"{self.root}: was made with other settings: {name} was {then}, and is {now} now. "
                    f"{OR_OVERWRITE}"
                )


def _content(path: Path) -> Any:
    """A small file that this package wrote once."""
    try:
        return load_json(path, "a file of this job", SMALL)
    except FileError as error:
        advice = "Choose another folder with -o." if path.name == NAME else OR_OVERWRITE
        raise FileError(f"{error}. {advice}") from None

"""Runs a job: flow for many pairs, taken up where it was left, shared among processes.

The law: whatever happens on the way (an interrupt, a kill, another process that does half of it),
once a job has run to its end its folder holds the same files, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.errors import ArgumentError, LcvError
from lcv.files import only_one
from lcv.predict import warm
from lcv.predict.claims import Claim, clip_name, key_of
from lcv.predict.clips import can_be_rebuilt
from lcv.predict.failures import Abandoned
from lcv.predict.frames import as_frame
from lcv.predict.inputs import FilmFile
from lcv.predict.job import Job, Listener, Silent, Summary
from lcv.predict.kept_plans import keep_plan, known_plan
from lcv.predict.manifest import Manifest
from lcv.predict.outputs import (
    Folder,
    is_left_of,
    leftovers,
    make_folder,
)
from lcv.predict.records import Record
from lcv.predict.settings import settings_of
from lcv.predict.shards import Part, divided_among, parts_of
from lcv.predict.sources import Film, Live, Sequence, Still

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor


class Run:
    """A job under way: what all its sequences share."""

    def __init__(self, predictor: Predictor, job: Job, listener: Listener | None = None) -> None:
        self.predictor, self.job = predictor, job
        self.listener: Listener = listener or Silent()
        self.summary = Summary()
        self.folder = None if job.root is None else Folder(job.root)
        self.manifest: Manifest | None = None
        self._planned: set[tuple[int, ...]] = set()
        self.records: dict[str, Record] = {}
        self._leftovers: dict[Path, list[Path]] = {}
        if job.root is not None:
            self.manifest = Manifest(job.root, settings_of(predictor, job))

    def go(self) -> Summary:
        """Do it all. Errors: of the settings, of writing, and any with `strict`."""
        from lcv.predict.passes import Pass

        if self.folder is not None and self.manifest is not None:
            self.folder.check()
            self.manifest.open(self.job.overwrite)
        sequences = self._opened()
        # As declared, and not as known by now: all shards must divide alike.
        counts = [self._limited(sequence.length) for sequence in sequences]
        # What no file holds cannot be put together from the files of several processes.
        whole = self.job.warm_start or (self._has_clips and not self._can_rebuild)
        parts = parts_of(counts, self.job.shard, whole=whole)
        self._open_records(sequences, parts)
        for part in parts:
            try:
                Pass(self, sequences[part.sequence], part).go()
            except Abandoned as reason:
                self.fail(reason.error)
        if self._has_clips and not whole:
            divided = divided_among(counts, self.job.shard.count)
            self._clips_of_all([sequences[number] for number in divided])
        self.summary.removed = sum(record.files.removed for record in self.records.values())
        return self.summary

    def pairs_of(self, sequence: Sequence) -> int | None:
        """Pairs of a sequence, as far as is known."""
        known = {} if self.manifest is None else self.manifest.sequence(key_of(sequence))
        return self._limited(known.get("frames", sequence.length))

    def admit(self, sequence: Sequence) -> frozenset[str]:
        """Refuse what would be mixed with something else in the folder, and remove what is no
        longer true of it; returns the names of pairs that are so removed.
        """
        record = self.records.get(key_of(sequence))
        if record is None:
            return frozenset()
        record.admit(self.job.overwrite, self.job.warm_start, self._spoiled)
        return frozenset(record.changed)

    def settle(self, sequence: Sequence) -> None:
        """Before anything is written of a sequence: put down what it is made with and from."""
        if self.manifest is not None and key_of(sequence) in self.records:
            self.manifest.adopt()
            self.records[key_of(sequence)].settle()

    def sweep(self, paths: Iterable[Path]) -> None:
        """Remove what a killed run left half-written for these files; folders are read once."""
        names: dict[Path, set[str]] = {}
        for path in paths:
            names.setdefault(path.parent, set()).add(path.name)
        for folder, own in names.items():
            if folder not in self._leftovers:
                self._leftovers[folder] = list(leftovers(folder))
            for path in self._leftovers[folder]:
                if is_left_of(path, own):
                    path.unlink(missing_ok=True)

    def say_plan(self, still: Still) -> None:
        """How pairs of this size will be computed, said once; Abandoned where they cannot be."""
        if still.size in self._planned:
            return
        plan, wanted = None, self.job.wanted
        try:
            self.predictor.take(as_frame(still.image, still.label))
            if self.manifest is not None:
                plan = known_plan(self.predictor, self.manifest, still.size, wanted)
            plan = plan or self.predictor.plan(*still.size, **wanted._asdict())
        except LcvError as error:
            raise Abandoned(error) from None
        if self.manifest is not None:
            plan = keep_plan(self.predictor, self.manifest, plan, wanted)
        self._planned.add(still.size)
        self.listener.say(plan.text)

    def fail(self, error: LcvError) -> None:
        """One thing could not be done; it is told at the end, or at once if the job is strict."""
        if self.job.strict:
            raise error
        self.summary.failures.append(error)

    def _open_records(self, sequences: Many[Sequence], parts: Many[Part]) -> None:
        """Records of the sequences that this process has a part of; with all sequences of the
        same record, and all their pairs, so that it is the same whichever process writes it.
        """
        if self.manifest is None or self.job.root is None:
            return
        own = {part.sequence: part for part in parts}
        claims: dict[str, list[Claim]] = {}
        for number, sequence in enumerate(sequences):
            pairs = self._limited(sequence.length)
            # A pair of a warm start is spoiled by those before it, beyond the limit too.
            whole = pairs if not self.job.warm_start else _pairs(sequence.length)
            part = own.get(number)
            if part is None:
                claim = Claim(sequence, whole, 0, 0)
            else:
                stop = pairs if self.job.frames is not None else None
                stop = stop if part.last is None else part.last + 1
                claim = Claim(sequence, whole, part.first, stop)
            claims.setdefault(key_of(sequence), []).append(claim)
        for key, group in claims.items():
            arrows = self.job.arrows if self.job.clip else None
            settings, outputs = self.manifest.settings, self.job.outputs
            record = Record(self.job.root, group, settings, outputs, arrows)
            if self.job.overwrite:
                record.drop_other()
            if any(claim.stop != 0 for claim in group):
                self.records[key] = record

    def _spoiled(self, sequence: Sequence, changed: list[int]) -> list[int]:
        if not self.job.warm_start:
            return changed
        pairs = _pairs(sequence.length)
        assert pairs is not None
        return warm.spoiled(self.predictor, sequence, changed, pairs)

    def _opened(self) -> list[Sequence]:
        opened: list[Sequence] = []
        for sequence in self.job.sequences:
            if not isinstance(sequence, FilmFile):
                opened.append(sequence)
                continue
            try:
                opened.append(sequence.open())
            except LcvError as error:
                self.fail(error)
        if not self.job.shard.is_all and any(sequence.is_live for sequence in opened):
            raise ArgumentError(
                f"--shard {self.job.shard}: a camera or a pipe is seen by one process only; leave "
                f"--shard out"
            )
        return opened

    def _limited(self, frames: int | None) -> int | None:
        """Pairs of so many frames, of which no more than was asked for are taken."""
        limit = self.job.frames
        if limit is not None:
            frames = limit if frames is None else min(frames, limit)
        return _pairs(frames)

    @property
    def _has_clips(self) -> bool:
        return bool(self.job.clip)

    @property
    def _can_rebuild(self) -> bool:
        return can_be_rebuilt(self.job.outputs, self.job.arrows)

    def _clips_of_all(self, sequences: Many[Sequence]) -> None:
        """Films of sequences that several processes share: made by whichever ends last."""
        from lcv.predict.passes import Pass

        lacking = [s for s in sequences if not Pass(self, s, Part(0)).has_clip()]
        if not lacking:
            return
        assert self.manifest is not None
        assert self.folder is not None
        shard, ended = self.job.shard, []

        def enter(content: dict[str, Any]) -> None:
            known = content.setdefault("shards", {}).setdefault(str(shard.count), [])
            ended.extend(sorted({*known, shard.index}))
            content["shards"][str(shard.count)] = list(ended)

        self.manifest.change(enter)
        if len(ended) < shard.count:
            self.listener.say(
                f"clips of sequences that shards share are made by the last of the "
                f"{shard.count} shards to end"
            )
            return
        for sequence in lacking:
            path = self.folder.clip(clip_name(sequence))
            make_folder(path.parent)
            with only_one(path):
                Pass(self, sequence, Part(0)).rebuild_clip()
        self.manifest.change(lambda content: content.pop("shards", None))


def _pairs(frames: int | None) -> int | None:
    return None if frames is None else max(0, frames - 1)


def is_exact(sequence: Sequence) -> bool:
    """Whether its length is known for certain before it is read."""
    return not isinstance(sequence, Film | Live)

"""Runs a job: flow for many pairs, taken up where it was left, shared among processes.

The law: whatever happens on the way (an interrupt, a kill, another process that does half of it),
once a job has run to its end its folder holds the same files, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import ArgumentError, FileError, LcvError
from lcv.files import only_one
from lcv.predict import warm
from lcv.predict.admission import check_no_input
from lcv.predict.anew import begin_anew, drop_other
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
    check_apart,
    is_left_of,
    leftovers,
    make_folder,
)
from lcv.predict.records import Record
from lcv.predict.settings import settings_of
from lcv.predict.shards import Part, divided_among, parts_of
from lcv.predict.sources import Film, Live, Sequence, Still, inputs_of
from lcv.predict.unmade import conclude

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
        self._others: dict[str, Record] = {}
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
        self._check_records(sequences)
        for part in parts:
            try:
                Pass(self, sequences[part.sequence], part).go()
            except Abandoned as reason:
                self.fail(reason.error)
        if self._has_clips and not whole:
            divided = set(divided_among(counts, self.job.shard.count))
            self._divided_clips([sequences[p.sequence] for p in parts if p.sequence in divided])
        for record in self.records.values():
            conclude(record)
            self.summary.left |= record.left()
        for record in (*self.records.values(), *self._others.values()):
            self.summary.removed += record.files.removed
        return self.summary

    def pairs_of(self, sequence: Sequence) -> int | None:
        """Pairs of a sequence, as far as is known."""
        record = self.record_of(sequence)
        known = None if record is None else record.frames
        return self._limited(sequence.length if known is None else known)

    def record_of(self, sequence: Sequence) -> Record | None:
        """All that is known of a sequence in the folder; None where there is no folder."""
        return self.records.get(key_of(sequence))

    def admit(self, sequence: Sequence) -> frozenset[str]:
        """Remove what is no longer true of a sequence; returns the names of pairs of which
        something was removed.
        """
        record = self.record_of(sequence)
        if record is None:
            return frozenset()
        record.admit(self._spoiled)
        return frozenset(record.changed)

    def settle(self, sequence: Sequence, pair: int, what: Iterable[str]) -> None:
        """Before anything is written of a pair: put down what it is made with and from, and `what`
        is about to be written.
        """
        record = self.record_of(sequence)
        if record is not None:
            record.settle(sequence, pair, what)

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
        """Records of the sequences that this process has a part of, and of others apart from them;
        with all sequences of the same record, and all their pairs, so that it is the same whichever
        process writes it.
        """
        if self.manifest is None or self.job.root is None:
            return
        own = {part.sequence: part for part in parts}
        limit = _pairs(self.job.frames)
        claims: dict[str, list[Claim]] = {}
        for number, sequence in enumerate(sequences):
            pairs = self._limited(sequence.length)
            # A pair of a warm start is spoiled by those before it, beyond the limit too.
            whole = pairs if not self.job.warm_start else _pairs(sequence.length)
            part = own.get(number)
            if part is None:
                claim = Claim(sequence, whole, 0, 0, limit)
            else:
                stop = limit if part.last is None else part.last + 1
                claim = Claim(sequence, whole, part.first, stop, limit)
            claims.setdefault(key_of(sequence), []).append(claim)
        settings, outputs, clip = self.manifest.settings, self.job.outputs, bool(self.job.clip)
        for key, group in claims.items():
            warm_start, shard = self.job.warm_start, self.job.shard
            record = Record(
                self.job.root,
                group,
                settings,
                outputs,
                clip,
                warm_start,
                shard,
                adopt=self.manifest.adopt,
            )
            mine = any(claim.is_any for claim in group)
            (self.records if mine else self._others)[key] = record

    def _check_records(self, sequences: Many[Sequence]) -> None:
        """Before the first pair: refuse all that must be, at once, or begin anew with all."""
        if isinstance(self.job.clip, Path):
            for sequence in sequences:
                check_apart([self.job.clip], inputs_of(sequence))
        refusals: list[LcvError] = []
        others = self._others.values() if self.job.overwrite else ()
        for record in others:
            check_no_input(record)
        for record in self.records.values():
            try:
                check_no_input(record)
                self.listener.begin(f"reading {record.file.called}", None)  # all of its bytes
                record.look()
                if not self.job.overwrite:
                    record.check()
            except LcvError as error:
                refusals.append(error)
        if len(refusals) == 1:
            raise refusals[0]
        if refusals:
            reasons = "".join(f"\n  {error}" for error in refusals)
            raise FileError(f"{len(refusals)} inputs are refused, and nothing was done:{reasons}")
        if self.job.overwrite:
            for record in self.records.values():
                begin_anew(record, is_shared=not self.job.shard.is_all)
            for record in others:
                drop_other(record)

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

    def _divided_clips(self, sequences: Many[Sequence]) -> None:
        """Films of sequences that several processes share: made by whichever finds all pairs there.

        Each looks after its last pair was written, so that the last one finds all.
        """
        from lcv.predict.passes import Pass

        assert self.folder is not None
        waiting = []
        for sequence in sequences:
            record = self.record_of(sequence)
            assert record is not None
            record.read()
            view = Pass(self, sequence, Part(0))
            if view.has_clip():
                continue
            if not view.is_complete():
                waiting.append(clip_name(sequence))
                continue
            path = self.folder.clip(clip_name(sequence))
            make_folder(path.parent)
            with only_one(path):
                record.read()
                if not view.has_clip():
                    view.rebuild_clip()
        if waiting:
            self.listener.say(
                f"{', '.join(waiting)}: no clip yet, since other shards have pairs of it to make; "
                f"the last of them to end makes it"
            )


def _pairs(frames: int | None) -> int | None:
    return None if frames is None else max(0, frames - 1)


def is_exact(sequence: Sequence) -> bool:
    """Whether its length is known for certain before it is read."""
    return not isinstance(sequence, Film | Live)

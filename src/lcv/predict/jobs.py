"""Runs a job: flow for many pairs, taken up where it was left, shared among processes.

The law: whatever happens on the way (an interrupt, a kill, another process that does half of it),
once a job has run to its end its folder holds the same files, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Many
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.errors import ArgumentError, LcvError
from lcv.files import only_one
from lcv.predict.clips import can_be_rebuilt
from lcv.predict.frames import as_frame
from lcv.predict.inputs import FilmFile
from lcv.predict.job import NOTHING_MORE, Job, Listener, Silent, Summary
from lcv.predict.kept_plans import keep_plan, known_plan, out_of_memory
from lcv.predict.manifest import Manifest, weights_hash
from lcv.predict.outputs import (
    Folder,
    Named,
    is_left_of,
    leftovers,
    make_folder,
    write_output,
)
from lcv.predict.pairs import Wanted
from lcv.predict.scale import own_scale
from lcv.predict.shards import Part, divided_among, parts_of
from lcv.predict.sources import Film, FrameFiles, Live, Sequence, Still
from lcv.version import __version__

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor


NAMELESS = "."


class Run:
    """A job under way: what all its sequences share."""

    def __init__(self, predictor: Predictor, job: Job, listener: Listener | None = None) -> None:
        self.predictor, self.job = predictor, job
        self.listener: Listener = listener or Silent()
        self.summary = Summary()
        self.folder = None if job.root is None else Folder(job.root)
        self.manifest: Manifest | None = None
        self._planned: set[tuple[int, ...]] = set()
        self._nameless: list[str] | None = None
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
        for part in parts:
            try:
                Pass(self, sequences[part.sequence], part).go()
            except Abandoned as reason:
                self.fail(reason.error)
        if self._has_clips and not whole:
            divided = divided_among(counts, self.job.shard.count)
            self._clips_of_all([sequences[number] for number in divided])
        return self.summary

    def pairs_of(self, sequence: Sequence) -> int | None:
        """Pairs of a sequence, as far as is known."""
        known = {} if self.manifest is None else self.manifest.sequence(key_of(sequence))
        return self._limited(known.get("frames", sequence.length))

    def fingerprints(self, sequence: Sequence) -> list[str]:
        """What tells a sequence apart; all that have no name of their own are told apart as one."""
        if sequence.name:
            return sequence.fingerprints()
        if self._nameless is None:
            first = [s for s in self.job.sequences if isinstance(s, FrameFiles) and not s.name][:3]
            self._nameless = [each for s in first for each in s.fingerprints()[:1]]
        return self._nameless

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
        if frames is None:
            return None if limit is None else limit - 1
        return max(0, (frames if limit is None else min(frames, limit)) - 1)

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


class Abandoned(Exception):
    """A sequence whose frames none can be computed, with the reason."""

    def __init__(self, error: LcvError) -> None:
        self.error = error


def run_pair(
    predictor: Predictor,
    sequence: Sequence,
    place: Named,
    wanted: Wanted = NOTHING_MORE,
    scale: float | None = None,
    overwrite: bool = False,
    listener: Listener | None = None,
) -> Summary:
    """One pair to files beside a named one. Every error is raised."""
    place.check(overwrite)
    before, after = sequence.stills()
    for still in (before, after):
        if still.error is not None:
            raise still.error
    assert before.image is not None
    frames = as_frame(before.image, before.label), as_frame(after.image, after.label)
    for frame in frames:
        predictor.take(frame)
    if before.size == after.size and listener is not None:
        listener.say(predictor.plan(*before.size, **wanted._asdict()).text)
    try:
        result = predictor(*frames, **wanted._asdict())
    except LcvError:
        raise
    except (MemoryError, RuntimeError) as error:
        raise out_of_memory(error, before.label) from error
    scale = own_scale(result.flow) if scale is None else scale
    for output in place.outputs:
        write_output(place.path(output), output, result, before.image, scale, overwrite)
    summary = Summary(done=1, notes=Counter(result.notes))
    if any(output.what == "png" for output in place.outputs):
        summary.scales.add(scale)
    return summary


def settings_of(predictor: Predictor, job: Job) -> dict[str, Any]:
    """All that decides the numbers in a job's files."""
    draws = job.clip or any(output.what == "png" for output in job.outputs)
    engine = predictor.engine
    return {
        "lcv": __version__,
        "model": predictor.name,
        "weights": weights_hash(predictor.model),
        "iters": getattr(engine, "iters", None),
        "pad": getattr(engine, "pad", None),
        "precision": predictor.precision,
        "warm_start": job.warm_start,
        "scale": (job.scale or "auto") if draws else None,
    }


def key_of(sequence: Sequence) -> str:
    """What a sequence is called in the job's file; those without a name share one entry."""
    return sequence.name or NAMELESS


def clip_name(sequence: Sequence) -> str:
    """What the film of a sequence is called."""
    return sequence.name or sequence.pair_name(0)


def is_exact(sequence: Sequence) -> bool:
    """Whether its length is known for certain before it is read."""
    return not isinstance(sequence, Film | Live)

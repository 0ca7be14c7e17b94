"""A run of a job: look at what is missing, compute it here or on a cluster, and make the clips."""

from __future__ import annotations

import os
import pickle
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lcv.cluster import Cluster
from lcv.errors import LcvError
from lcv.files import check_apart
from lcv.predict.done_log import Files
from lcv.predict.folder import JobFolder
from lcv.predict.job import Job, Listener, Summary
from lcv.predict.outputs import Named, stored_panel
from lcv.predict.predictor import Predictor
from lcv.predict.selection import EVERYTHING, Shard, limited
from lcv.predict.sources import Sequence, Video, title
from lcv.predict.worker import ENDLESS, Work, Worker

MOST_CHUNK = 32  # pairs that a worker of a cluster computes at a time


class Run:
    """A job from its beginning to its end."""

    def __init__(self, predictor: Predictor, job: Job, listener: Listener | None = None) -> None:
        self.job, self.worker = job, Worker(predictor, job, listener)

    def go(self, cluster: Cluster | None = None, options: dict[str, Any] | None = None) -> Summary:
        """Run the job, alone or with a cluster's workers. options: Predictor arguments for them

        Raises errors in the settings and in writing, and with `strict` any error.
        """
        parts = self.survey()
        missing = [work for work in parts if work.missing != 0]
        if cluster is None:
            for work in missing:
                self.worker.compute(work)
        elif missing:
            self._share(missing, cluster, options or {})
        self._make_clips([work.sequence for work in parts])
        return self.worker.summary

    def survey(self) -> list[Work]:
        """What is missing of this process's share; bad settings are refused before any work."""
        job, folder, sequences = self.job, self.worker.folder, self._opened()
        if not sequences:
            return []
        files = [file for sequence in job.sequences for file in sequence.files]
        if isinstance(job.place, Named):
            job.place.check(files, job.overwrite)
        if isinstance(job.clip, Path):
            check_apart([job.clip], files)
        if folder is not None:
            folder.open(job.overwrite, files)
            for sequence in sequences:
                folder.check_same_input(sequence)
        parts = [(number, ENDLESS) for number, each in enumerate(sequences) if each.is_live]
        pairs = [(sequence.length or 1) - 1 for sequence in sequences]
        parts += parts_of(pairs, job.shard, whole=job.warm_start)
        return [self._missing(sequences[number], own) for number, own in parts]

    def _opened(self) -> list[Sequence]:
        opened: list[Sequence] = []
        for sequence in self.job.sequences:
            try:
                known = sequence.opened() if isinstance(sequence, Video) else sequence
                chosen = self.job.selection
                opened.append(known if chosen == EVERYTHING else chosen.of(known))
            except LcvError as error:
                self.worker.fail(error)
        return opened

    def _missing(self, sequence: Sequence, pairs: range) -> Work:
        """What is missing of a sequence's pairs; those that are done before the first are left out."""
        folder, outputs = self.worker.folder, self.worker.outputs
        if folder is None or sequence.is_live:
            return Work(sequence, pairs, None if sequence.is_live else len(pairs))
        missing = [pair for pair in pairs if not folder.is_done(sequence, pair, outputs)]
        first = missing[0] if missing else pairs.stop
        self.worker.summary.there += first - pairs.start
        return Work(sequence, range(first, pairs.stop), len(missing))

    def _share(self, parts: list[Work], cluster: Cluster, options: dict[str, Any]) -> None:
        """Let workers compute chunks: of videos large ones, in a warm start whole sequences."""
        worker, total = self.worker, sum(work.missing or 0 for work in parts)
        chunks = []
        for number, (sequence, pairs, _) in enumerate(parts):
            step = min(MOST_CHUNK, -(-total // (4 * cluster.workers)))
            if self.job.warm_start:
                step = len(pairs)
            elif isinstance(sequence, Video):  # which is decoded from its beginning
                step = -(-len(pairs) // cluster.workers)
            chunks += [(number, pairs[i : i + step]) for i in range(0, len(pairs), step)]
        sequences = tuple(work.sequence for work in parts)
        job = replace(self.job, sequences=sequences, overwrite=False)
        options = {**options, "precision": worker.predictor.precision}
        order = pickle.dumps((options, job, Path.cwd(), cluster.cores, cluster.per_machine))
        worker.listener.begin(f"{cluster.workers} workers", total)
        with closing(cluster.map(compute_chunk, order, chunks)) as results:
            for summary, ends in results:
                worker.summary.add(summary)
                for name, end in ends.items():  # a chunk past the end reports its own start
                    worker.ends[name] = min(end, worker.ends.get(name, end))
                worker.listener.advance(summary.done + len(summary.failed))

    def _make_clips(self, sequences: list[Sequence]) -> None:
        """The clips of sequences that are done, but for what failed here, from stored outputs."""
        worker, folder = self.worker, self.worker.folder
        if not self.job.clip or folder is None:
            return
        if self.job.shard.total > 1:
            worker.listener.say("--shard makes no clips; run without it once all are done")
            return
        folder.log.read()
        folder.files = Files()  # other workers may have written since
        for sequence in (limited(each, worker.ends.get(title(each))) for each in sequences):
            name, pairs = title(sequence), range((sequence.length or 1) - 1)
            shown = [pair for pair in pairs if folder.is_done(sequence, pair, worker.outputs)]
            failed = {pair for where, pair in worker.summary.failed if where == name}
            if {*pairs} - {*shown} - failed:
                worker.listener.say(f"{name}: no clip, since pairs are missing; run this again")
            elif shown and len(pairs) > 1:
                self._make_clip(folder, sequence, shown)
            elif shown and self.job.selection != EVERYTHING:
                worker.listener.say(f"{name}: no clip, since only one pair is left")

    def _make_clip(self, folder: JobFolder, sequence: Sequence, shown: list[int]) -> None:
        worker, arrows = self.worker, self.job.arrows
        scale = worker.scales.of(sequence) or 1.0
        stamp = folder.stamp(sequence, shown, scale, arrows)
        if folder.has_clip(sequence, stamp):
            return
        worker.listener.begin(f"{title(sequence)}, clip", None)
        forward = [output for output in self.job.outputs if not output.backward]
        pairs = frozenset(shown)
        with worker.clip_of(sequence) as clip:
            for frame in sequence.frames(only=pairs):
                if frame.index in pairs:
                    files = {o.what: folder.path(o, sequence, frame.index) for o in forward}
                    clip.write(stored_panel(frame.image, files, scale, arrows))
        worker.note_clip(clip)
        if clip.failed is None:
            folder.record(sequence, [clip.path], clip=stamp)


def parts_of(pairs: list[int], shard: Shard, *, whole: bool = False) -> list[tuple[int, range]]:
    """A shard's share: numbers of sequences, and the pairs of each. pairs: of each sequence

    It is contiguous, so that neighbours share their frame. With `whole`, sequences are not divided.
    Facts: together the shards cover every pair exactly once.
    """
    low, high = ((shard.number - step) * sum(pairs) // shard.total for step in (1, 0))
    parts, start = [], 0
    for number, count in enumerate(pairs):
        own = range(max(low, start) - start, min(high, start + count) - start)
        if whole:
            own = range(count if low <= start < high else 0)
        if own:
            parts.append((number, own))
        start += count
    return parts


def compute_chunk(order: bytes, chunk: tuple[int, range]) -> tuple[Summary, dict[str, int]]:
    """What a worker of a cluster does: pairs of a sequence; it loads the network once."""
    worker, (number, pairs) = _worker(order), chunk
    worker.summary, worker.ends = Summary(), {}
    assert worker.folder is not None
    worker.folder.log.read()
    worker.compute(Work(worker.job.sequences[number], pairs, len(pairs)))
    return worker.summary, worker.ends


@cache
def _worker(order: bytes) -> Worker:
    options, job, folder, cores, per_machine = pickle.loads(order)
    os.chdir(folder)
    torch.set_num_threads(cores)
    worker = Worker(Predictor(**options), job)
    worker.predictor.planner.share = per_machine
    assert worker.folder is not None
    worker.folder.open(overwrite=False, inputs=())
    return worker

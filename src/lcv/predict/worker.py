"""A worker: pairs of one sequence after another, computed, written and recorded.

Every kind of input goes through this loop, a single pair, a folder, a video, a camera or a list,
and so do the parts of a job that workers of a cluster compute.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from lcv.errors import ArgumentError, FileError, LcvError, ShapeError
from lcv.predict.clip import ClipWriter
from lcv.predict.folder import OR_OVERWRITE, JobFolder
from lcv.predict.frames import as_frame
from lcv.predict.job import Job, Listener, Summary
from lcv.predict.memory import Plan
from lcv.predict.outputs import LOW, Drawing, Named, Output
from lcv.predict.predictor import OUT_OF_MEMORY, Predictor, Stream
from lcv.predict.result import FlowResult
from lcv.predict.scale import own_scale, sample_pairs, sequence_scale
from lcv.predict.sources import Live, RawFrame, Sequence, title
from lcv.visual.panel import arrows_stretch, panel

ENDLESS = range(sys.maxsize)


class Work(NamedTuple):
    """Pairs of a sequence. missing: how many of them are not done; None: nobody knows"""

    sequence: Sequence
    pairs: range
    missing: int | None


class Worker:
    """A predictor at work on a job.

    ends: the frames of videos that turned out to be shorter than they say, by title
    """

    def __init__(self, predictor: Predictor, job: Job, listener: Listener | None = None) -> None:
        self.predictor, self.job = predictor, job
        self.listener = listener or Listener()
        self.summary = Summary()
        self.folder: JobFolder | None = None
        if isinstance(job.place, Path):
            self.folder = JobFolder(job.place, job.settings(predictor))
        self.outputs = (*job.outputs, LOW) if job.warm_start and self.folder else job.outputs
        self.draws = bool(job.clip) or any(
            each.what in ("png", "overlay", "look") for each in job.outputs
        )
        self.ends: dict[str, int] = {}
        self._planned: set[tuple[int, ...]] = set()
        self._unmeasured: set[tuple[int, ...]] = set()
        self._scales: dict[str, float | None] = {}

    def compute(self, work: Work) -> None:
        """Compute, write and record the pairs of one sequence."""
        sequence = work.sequence
        self.listener.begin(title(sequence), work.missing)
        try:
            with ExitStack() as stack:
                clip = None
                if self.job.clip and (self.folder is None or sequence.is_live):
                    clip = stack.enter_context(self.clip_of(sequence))
                if isinstance(sequence, Live):
                    stack.enter_context(sequence.until_interrupted())
                if work.missing != 0:
                    _Pass(self, sequence, clip).go(work.pairs)
            if clip is not None:
                self.note_clip(clip)
        except (ArgumentError, ShapeError) as error:
            self.fail(error)  # no pair of this sequence can be computed; others may

    def clip_of(self, sequence: Sequence) -> ClipWriter:
        """The clip of a sequence, to be filled."""
        path, overwrite = self.job.clip, self.job.overwrite
        if self.folder is not None:
            path, overwrite = self.folder.prepare(self.folder.clip_path(sequence)), True
        assert isinstance(path, Path)
        return ClipWriter(path, sequence.rate, overwrite)

    def note_clip(self, clip: ClipWriter) -> None:
        """Say what became of a clip."""
        if clip.failed is not None:
            self.fail(clip.failed)
        elif clip.count:
            self.summary.clips.append(clip.path)

    def plan(self, frame: RawFrame) -> None:
        """How pairs of this size are computed: as the job has decided, or decides now."""
        predictor, folder = self.predictor, self.folder
        height, width = predictor.computed_size(*frame.image.shape[:2])
        if (height, width) in self._planned:
            return
        predictor.take(as_frame(frame.image, frame.label))
        name = f"{width}x{height}"
        kept = None if folder is None else folder.kept("strategy", name)
        plan = None if kept else predictor.plan(height, width, **self.job.wanted._asdict())
        if folder is not None and plan is not None and plan.bytes is None:
            self._unmeasured.add((height, width))
        elif folder is not None:
            kept = folder.keep("strategy", name, plan.as_json) if plan else kept
            plan = self._kept_plan(folder, kept, height, width)
            predictor.planner.keep(plan)
        self._planned.add((height, width))
        self.listener.say(cast(Plan, plan).text)

    def keep_measured(self, folder: JobFolder, plan: Plan) -> None:
        """Decide on the strategy of a network whose memory was unknown before the first pair."""
        if (plan.height, plan.width) in self._unmeasured:
            self._unmeasured.remove((plan.height, plan.width))
            folder.keep("strategy", f"{plan.width}x{plan.height}", plan.as_json)

    def _kept_plan(self, folder: JobFolder, kept: Any, height: int, width: int) -> Plan:
        asked, limit = self.predictor.strategy, self.predictor.max_memory
        try:
            plan = Plan.from_json(kept, height, width, limit)
            if plan.strategy not in self.predictor.matcher.strategies:
                raise ValueError(plan.strategy)
        except (TypeError, ValueError):
            where = folder.root / "strategy"
            raise FileError(f"{where}: {kept!r} is no strategy. {OR_OVERWRITE}") from None
        if asked not in ("auto", plan.strategy) or (plan.bytes or 0) > (limit or sys.maxsize):
            raise FileError(
                f"{folder.root}: its frames of {plan.text}, which --strategy or --max-memory does "
                f"not allow here. {OR_OVERWRITE}"
            )
        return plan

    def scale_of(self, sequence: Sequence, flow: np.ndarray) -> float:
        """The scale of a pair's picture: the sequence's, or where it has none the pair's own."""
        if not self.draws:
            return 1.0
        scale = self.sequence_scale(sequence) or own_scale(flow)
        self.summary.scales.add(scale)
        return scale

    def sequence_scale(self, sequence: Sequence) -> float | None:
        """One scale for a sequence; None for a single pair, and for what runs now."""
        pairs, name = (sequence.length or 1) - 1, title(sequence)
        if self.job.scale is not None or pairs < 2:
            return self.job.scale
        if name not in self._scales:
            scale = None if self.folder is None else self.folder.kept("scale", name)
            if scale is None:
                few = len(sample_pairs(pairs))
                self.listener.say(f"{name}: looking at {few} of {pairs} pairs for a common scale")
                scale = sequence_scale(lambda a, b: self.predictor(a, b).flow, sequence, pairs)
                if scale is not None and self.folder is not None:
                    scale = self.folder.keep("scale", name, scale)
            if scale is not None and not isinstance(scale, float | int):
                raise FileError(f"{name}: the job's scale is {scale!r}, no number. {OR_OVERWRITE}")
            self._scales[name] = scale
        return self._scales[name]

    def fail(self, error: LcvError) -> None:
        """One thing could not be done; it is told at the end, or at once if the job is strict."""
        if self.job.strict:
            raise error
        self.summary.failures[str(error)] = error


class _Pass:
    """One pass over a sequence, each frame read and encoded once. clip: to fill on the way"""

    def __init__(self, worker: Worker, sequence: Sequence, clip: ClipWriter | None) -> None:
        self.worker, self.job, self.folder = worker, worker.job, worker.folder
        self.sequence, self.clip = sequence, clip
        self.stream = Stream(worker.predictor, self.job.warm_start, self.job.wanted)

    def go(self, pairs: range) -> None:
        """Compute those that are not done."""
        sequence, worker, folder, before = self.sequence, self.worker, self.folder, None
        if folder is not None and pairs is not ENDLESS:
            folder.sweep(self._path(pair, output) for pair in pairs for output in worker.outputs)
        frames = sequence.frames(pairs.start, None if pairs is ENDLESS else pairs.stop + 1)
        with closing(cast(Any, frames)):
            for frame in frames:
                if before is None:
                    pass
                elif folder and folder.is_done(sequence, before.index, worker.outputs):
                    self.stream.reset()
                    worker.summary.there += 1
                else:
                    self._pair(before, frame)
                before = frame
        if pairs is not ENDLESS and (before is None or before.index < pairs.stop):
            # Hidden frames count in a video's length, but are not shown.
            worker.ends[title(sequence)] = before.index + 1 if before else pairs.start

    def _pair(self, before: RawFrame, after: RawFrame) -> None:
        worker, pair = self.worker, before.index
        result = self._flow(before, after)
        if result is None:
            self.stream.reset()
            worker.summary.failed.add((title(self.sequence), pair))
            if self.job.warm_start and self.folder is not None:
                self.folder.remove(self._path(pair, LOW))  # the next pair starts from nothing
        else:
            scale = worker.scale_of(self.sequence, result.flow)
            self._write(pair, Drawing(result, before.image, scale, self.stream.low, self.job.truth))
            if self.clip is not None:
                self.clip.write(panel(before.image, result.flow, scale, self.job.arrows))
            worker.summary.done += 1
            worker.summary.notes.update(result.notes)
            if self.job.arrows and (times := arrows_stretch(before.image.shape, scale)) > 1:
                worker.summary.notes.update([f"arrows are {times:g} times as long as the motion"])
        worker.listener.advance(computed=result is not None)

    def _flow(self, before: RawFrame, after: RawFrame) -> FlowResult | None:
        """The result of a pair; None, and the reason noted, where there is none."""
        if self.folder is not None:
            self.folder.identities(self.sequence, before.index)
        try:
            is_of_one_size = before.image.shape == after.image.shape
        except LcvError as error:
            self.worker.fail(error)
            return None
        if is_of_one_size:
            self.worker.plan(before)
        try:
            if self.stream.is_empty:
                self.stream.push(as_frame(before.image, before.label, owned=True))
                self.stream.low = self._stored_low(before.index - 1)
            result = self.stream.push(as_frame(after.image, after.label, owned=True))
            assert result is not None
            flows = [flow for flow in (result.flow, result.backward) if flow is not None]
            if not all(
                np.isfinite(np.vdot(x, x)) for flow in flows for x in np.moveaxis(flow, 2, 0)
            ):
                raise LcvError(
                    f"{before.label}: the flow to {after.label} is not finite; look at the weights, "
                    f"or leave out --precision"
                )
            return result
        except LcvError as error:
            self.worker.fail(error)
            return None
        except (MemoryError, RuntimeError) as error:
            known = isinstance(error, MemoryError | torch.OutOfMemoryError)
            if not known and "allocate memory" not in str(error):
                raise
            raise ArgumentError(
                f"{before.label}: memory ran out. Something else may have taken what was free at the "
                f"start: say --max-memory with less than was planned, and --overwrite, since that "
                f"gives other bits"
            ) from error

    def _write(self, pair: int, drawing: Drawing) -> None:
        """Write what is missing of a pair, and then its line."""
        folder, written, plan = self.folder, [], drawing.result.plan
        for output in self.worker.outputs:
            path = self._path(pair, output)
            if folder is not None and folder.is_done(self.sequence, pair, [output]):
                continue
            if folder is not None:
                folder.prepare(path)
            drawing.write(path, output, folder is not None or self.job.overwrite)
            written.append(path)
        if folder is not None:
            notes = [note for note in drawing.result.notes if note.startswith(OUT_OF_MEMORY)]
            folder.record(self.sequence, written, pair, notes=notes)
            if plan is not None and plan.bytes is not None:
                self.worker.keep_measured(folder, plan)

    def _path(self, pair: int, output: Output) -> Path:
        place = self.folder or self.job.place
        assert isinstance(place, JobFolder | Named)
        return place.path(output, self.sequence, pair)

    def _stored_low(self, pair: int) -> torch.Tensor | None:
        """What a warm start goes on from: the low flow of the pair before."""
        if self.folder is None or not self.job.warm_start or pair < 0:
            return None
        if not self.folder.is_done(self.sequence, pair, [LOW]):
            return None
        low = np.load(self._path(pair, LOW), allow_pickle=False)
        return torch.from_numpy(low).to(self.worker.predictor.device)

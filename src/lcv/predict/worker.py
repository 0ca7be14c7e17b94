"""A worker: pairs of one sequence after another, computed, written and recorded.

Every kind of input goes through this loop, a single pair, a folder, a video, a camera or a list,
and so do the parts of a job that workers of a cluster compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from lcv.errors import ArgumentError, FileError, LcvError, ShapeError
from lcv.predict.folder import JobFolder
from lcv.predict.frames import as_frame
from lcv.predict.job import Job, Listener, Summary
from lcv.predict.memory import Plan
from lcv.predict.outputs import LOW, Drawing, Named, Output
from lcv.predict.pending import Pending
from lcv.predict.predictor import OUT_OF_MEMORY, Predictor, Stream
from lcv.predict.result import FlowResult
from lcv.predict.scale import Scales, own_scale
from lcv.predict.sources import FrameFiles, Live, RawFrame, Sequence, title
from lcv.threads import Behind, cores, prepared
from lcv.visual.panel import arrows_stretch, panel
from lcv.visual.video import ClipWriter

ENDLESS = range(sys.maxsize)
# Threads that read pictures ahead, one for each core: at least 4, since files are waited for too, at most
# 8, since each picture is held in memory. Pairs that may be computed and not yet written.
READERS, WAITING = max(4, min(8, cores())), 2


class Work(NamedTuple):
    """Pairs of a sequence. missing: how many of them are not done; None: unknown"""

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
        drawn = {"png", "overlay", "look"} & {each.what for each in job.outputs}
        self.draws = bool(job.clip or drawn)
        self.ends: dict[str, int] = {}
        self._planned: set[tuple[int, ...]] = set()
        self._unmeasured: set[tuple[int, ...]] = set()

    @cached_property
    def scales(self) -> Scales:
        """The scales of the sequences' pictures."""
        return Scales(self.predictor, self.job, self.folder, self.listener)

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
        predictor.check_size((height, width), frame.label, frame.image.shape[:2])
        name = f"{width}x{height}"
        kept = None if folder is None else folder.kept("strategy", name)
        plan = None if kept else predictor.plan(height, width, **self.job.wanted._asdict())
        if folder is not None and plan is not None and plan.bytes is None:
            self._unmeasured.add((height, width))
        elif folder is not None:
            kept = folder.keep("strategy", name, plan.as_json) if plan else kept
            plan = folder.plan(kept, height, width, predictor.planner, self.job.wanted)
        self._planned.add((height, width))
        self.listener.say(cast(Plan, plan).text)

    def keep_measured(self, folder: JobFolder, plan: Plan) -> None:
        """Decide on the strategy of a network whose memory was unknown before the first pair."""
        if (plan.height, plan.width) in self._unmeasured:
            self._unmeasured.remove((plan.height, plan.width))
            folder.keep("strategy", f"{plan.width}x{plan.height}", plan.as_json)

    def scale_of(self, sequence: Sequence, flow: np.ndarray) -> float:
        """The scale of a pair's picture: the sequence's, or where it has none the pair's own."""
        if not self.draws:
            return 1.0
        scale = self.scales.of(sequence) or own_scale(flow)
        self.summary.scales.add(scale)
        return scale

    def fail(self, error: LcvError) -> None:
        """One thing could not be done; it is reported at the end, or at once if the job is strict."""
        if self.job.strict:
            raise error
        self.summary.failures[str(error)] = error


class _Pass:
    """One pass over a sequence, each frame read and encoded once. clip: to fill on the way"""

    def __init__(self, worker: Worker, sequence: Sequence, clip: ClipWriter | None) -> None:
        self.worker, self.job, self.folder = worker, worker.job, worker.folder
        self.sequence, self.clip = sequence, clip
        self.stream = Stream(worker.predictor, self.job.warm_start, self.job.wanted)
        self.refused: dict[tuple[int, ...], LcvError] = {}

    def go(self, pairs: range) -> None:
        """Compute those that are not done."""
        sequence, worker, folder, before = self.sequence, self.worker, self.folder, None
        if folder is not None and pairs is not ENDLESS:
            folder.sweep(self._path(pair, output) for pair in pairs for output in worker.outputs)
        if folder is not None:
            folder.identities(sequence, pairs.start)  # of a video, before it is read

        def is_done(pair: int) -> bool:
            return folder is not None and folder.is_done(sequence, pair, worker.outputs)

        # Only a guess: with a warm start, computing a pair makes the next one out of date.
        guess = cache(is_done)

        def is_needed(frame: int) -> bool:
            return any(pair in pairs and not guess(pair) for pair in (frame - 1, frame))

        frames = sequence.frames(pairs.start, None if pairs is ENDLESS else pairs.stop + 1)
        with ExitStack() as stack:
            stack.enter_context(closing(cast(Any, frames)))
            if isinstance(sequence, FrameFiles):
                frames = prepared(frames, partial(self._read_ahead, is_needed), READERS)
                stack.enter_context(closing(cast(Any, frames)))
            self.behind = stack.enter_context(Behind(WAITING))
            for frame in frames:
                if before and is_done(before.index):
                    self.stream.reset()
                    worker.summary.there += 1
                elif before:
                    self._pair(before, frame)
                before = frame
            if before is None or before.index < (1 if pairs is ENDLESS else pairs.stop):
                self._ended_early(before, pairs)

    def _ended_early(self, last: RawFrame | None, pairs: range) -> None:
        """Fewer frames came than expected: the input is damaged, or shorter than it says."""
        name = title(self.sequence)
        if pairs is not ENDLESS:  # hidden frames count in a video's length, but are not shown
            self.worker.ends[name] = last.index + 1 if last else pairs.start
        try:
            if last is not None:
                last.read()  # an error may have come in the place of a frame
            if pairs is ENDLESS:
                raise LcvError(f"{name}: fewer than two frames came; flow needs two")
        except LcvError as error:
            self.worker.fail(error)

    def _read_ahead(
        self, is_needed: Callable[[int], bool], pool: ThreadPoolExecutor, frame: RawFrame
    ) -> RawFrame:
        """The same frame; its file is being read if the frame is needed."""
        if not is_needed(frame.index):
            return frame

        def read() -> np.ndarray:
            if self.folder is not None:  # what the file is, before it is read
                self.folder.files.identity(cast(Path, self.sequence.file_of(frame.index)))
            return frame.read()

        return replace(frame, read=partial(pool.submit(read).result, None))

    def _pair(self, before: RawFrame, after: RawFrame) -> None:
        """Compute a pair; a second thread writes it, and with a warm start the next pair waits."""
        with explain_out_of_memory(before.label):
            pending = self._begin(before, after)
            if pending is None:
                self.stream.reset()
            elif self.worker.draws:
                self.worker.scales.of(self.sequence)  # which may need the predictor
        low = self.stream.low
        finish = explain_out_of_memory(before.label)(self._finish)
        self.behind.do(lambda: finish(before, after, pending, low))
        if self.job.warm_start:
            self.behind.join()
            if (title(self.sequence), before.index) in self.worker.summary.failed:
                self.stream.reset()

    def _begin(self, before: RawFrame, after: RawFrame) -> Pending | None:
        """A pair under way; None, and the reason noted, where it cannot be computed."""
        if self.folder is not None:
            self.folder.identities(self.sequence, before.index)
        try:
            is_of_one_size = before.image.shape == after.image.shape
        except LcvError as error:
            self.worker.fail(error)
            return None
        try:
            if is_of_one_size:
                self.worker.plan(before)
            if self.stream.is_empty:
                self.stream.push(as_frame(before.image, before.label, owned=True))
                self.stream.low = self._stored_low(before.index - 1)
            return self.stream.begin(as_frame(after.image, after.label, owned=True))
        except (ArgumentError, ShapeError) as error:
            if not isinstance(self.sequence, FrameFiles):
                raise  # all frames of a video have this size
            known = self.refused if is_of_one_size else {}  # each size is reported once
            self.worker.fail(known.setdefault(before.image.shape, error))
            return None

    def _finish(self, before: RawFrame, after: RawFrame, pending: Pending | None, low: Any) -> None:
        """Draw, write and record a pair."""
        worker, pair = self.worker, before.index
        result = None if pending is None else self._finite(before, after, pending.result(lent=True))
        if result is None:
            worker.summary.failed.add((title(self.sequence), pair))
            if self.job.warm_start and self.folder is not None:
                self.folder.remove(self._path(pair, LOW))  # the next pair starts from nothing
        else:
            scale = worker.scale_of(self.sequence, result.flow)
            self._write(pair, Drawing(result, before.image, scale, low, self.job.truth))
            if self.clip is not None:
                self.clip.write(panel(before.image, result.flow, scale, self.job.arrows))
            worker.summary.done += 1
            worker.summary.notes.update(result.notes)
            if self.job.arrows and (times := arrows_stretch(before.image.shape, scale)) > 1:
                worker.summary.notes.update([f"arrows are {times:g} times as long as the motion"])
        worker.listener.advance(computed=result is not None)

    def _finite(self, before: RawFrame, after: RawFrame, result: FlowResult) -> FlowResult | None:
        """The result; None, and the reason noted, if not all of it is finite."""
        flows = [flow for flow in (result.flow, result.backward) if flow is not None]
        # Not by np.vdot: BLAS's threads keep all cores busy long after it.
        if all(np.isfinite(flow).all() for flow in flows):
            return result
        why = f"flow to {after.label} is not finite; check the weights, or leave out --precision"
        self.worker.fail(LcvError(f"{before.label}: the {why}"))
        return None

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
        path = self._path(pair, LOW)
        try:
            low = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            raise FileError(f"{path}: is damaged; remove it and run this again") from None
        return torch.from_numpy(low).to(self.worker.predictor.device)


@contextmanager
def explain_out_of_memory(label: str) -> Iterator[None]:
    """Where memory runs out in the block, an error that names the frame and says what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not known and "allocate memory" not in str(error):
            raise
        raise ArgumentError(
            f"{label}: memory ran out; other programs may have taken it since the start. Use a smaller "
            f"--max-memory; a job that was started needs --overwrite too"
        ) from error

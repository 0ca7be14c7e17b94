"""One pass over one sequence: what is there already is passed over, what is missing is made."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import numpy as np

from lcv.data.formats.video import video_info
from lcv.errors import FileError, LcvError
from lcv.predict import warm
from lcv.predict.claims import clip_name
from lcv.predict.clips import ClipWriter, can_be_rebuilt, panel, stored_panel
from lcv.predict.failures import Abandoned, check_finite
from lcv.predict.frames import as_frame
from lcv.predict.jobs import Run, is_exact
from lcv.predict.kept_plans import out_of_memory
from lcv.predict.outputs import CLIPS
from lcv.predict.pair_files import PairFiles
from lcv.predict.result import FlowResult
from lcv.predict.scale import Scale, sample_pairs
from lcv.predict.shards import Part
from lcv.predict.sources import ENDLESS, Film, Live, Sequence, Still, any_possible
from lcv.predict.stream import Stream


class Pass:
    """Pairs `part` of a sequence; settings, records and counts are those of `run`."""

    def __init__(self, run: Run, sequence: Sequence, part: Part) -> None:
        self.run, self.job, self.sequence, self.part = run, run.job, sequence, part
        self.record = run.record_of(sequence)
        self.files = PairFiles(run, sequence)
        self.stream = Stream(run.predictor, warm_start=run.job.warm_start, wanted=run.job.wanted)
        self.position: int | None = None
        self.state: warm.State | None = None
        self.changed: frozenset[str] = frozenset()
        self.shown: list[int] = []
        self.scale = Scale(run.predictor, sequence, run.job.scale)

    def go(self) -> None:
        """Make what is missing."""
        self.changed = self.run.admit(self.sequence)
        known = self._known_pairs()
        self.run.sweep(self.files.places(known))
        missing = [pair for pair in known if not self.files.are_done(pair)]
        with_clip = self._wants_clip and (bool(missing) or not self.has_clip())
        is_open = self.sequence.is_live and self.job.frames is None
        self.run.listener.begin(clip_name(self.sequence), None if is_open else len(known))
        if missing or with_clip or not self._is_end_known:
            start, compute = self._work(known, missing, with_clip)
            self._count("there", start - self.part.first)
            if with_clip and self.record is not None:
                self.record.note_clip(self.sequence, None, self._look())
            with ExitStack() as stack:
                film = (
                    stack.enter_context(self.files.film(self._clip_path())) if with_clip else None
                )
                if isinstance(self.sequence, Live):
                    stack.enter_context(self.sequence.until_interrupted())
                self._read(start, compute, film)
                if film is not None:
                    self.files.settle_film(film, self.shown)
            if film is not None:
                self._note_film(film)
        else:
            self._count("there", len(known))
        if self._is_drawn:
            self.run.summary.scales.update(self.scale.used)
        if self.job.warm_start and self.job.root is not None:
            warm.remove(self._state_path())

    def has_clip(self) -> bool:
        """Whether the film of this sequence is there, readable, and shows every flow as it is now."""
        if self.record is None:
            return False
        shown = [pair for pair in self._known_pairs() if self.files.are_done(pair)]
        if not self.record.shows(self.sequence, shown, self._look()):
            return False
        try:
            return video_info(self._clip_path()).frames == len(shown)
        except LcvError:
            return False

    def is_complete(self) -> bool:
        """Whether every pair is there but for those that cannot be, for want of their frames."""
        missing = {pair for pair in self._known_pairs() if not self.files.are_done(pair)}
        return not any_possible(self.sequence, missing)

    def rebuild_clip(self) -> None:
        """The film of the whole sequence from the files of its pairs, whoever made them."""
        assert self.record is not None
        self.record.note_clip(self.sequence, None, self._look())
        with self.files.film(self._clip_path()) as film:
            self._read(0, range(0), film, is_counted=False)
            self.files.settle_film(film, self.shown)
        self._note_film(film)

    def _known_pairs(self) -> range:
        """The pairs of this part, as far as is known before they are read."""
        count = self.run.pairs_of(self.sequence) or 0
        last = count if self.part.last is None else min(count, self.part.last + 1)
        return range(self.part.first, max(self.part.first, last))

    @property
    def _is_end_known(self) -> bool:
        """Whether nothing can come after `_known_pairs`."""
        if self.part.last is not None or is_exact(self.sequence):
            return True
        if self.record is not None and self.record.frames is not None:
            return True
        limit = self.job.frames
        return limit is not None and self.run.pairs_of(self.sequence) == limit - 1

    @property
    def _wants_clip(self) -> bool:
        return bool(self.job.clip) and self.part.is_whole and self.run.pairs_of(self.sequence) != 1

    @property
    def _is_stored(self) -> bool:
        """Whether the film can be made from files."""
        return self.run.folder is not None and can_be_rebuilt(self.job.outputs, self.job.arrows)

    def _work(self, known: range, missing: list[int], with_clip: bool) -> tuple[int, range | None]:
        """(the first frame to read, the pairs to compute; None: those that are not done)."""
        first = missing[0] if missing else known.stop
        if with_clip and not self._is_stored:
            return self.part.first, range(self.part.first, ENDLESS)
        if not self.job.warm_start:
            return (self.part.first if with_clip else first), None
        state = warm.read(self._state_path())
        # A later pair's state is of no use for an earlier one, so that all is computed again.
        self.state = state if state is not None and state.pair < first else None
        begin = self.part.first if self.state is None else self.state.pair + 1
        end = missing[-1] + 1 if missing else known.stop
        compute = range(begin, end if self._is_end_known else ENDLESS)
        return (self.part.first if with_clip else begin), compute

    def _read(
        self,
        start: int,
        compute: range | None,
        film: ClipWriter | None,
        is_counted: bool = True,
    ) -> None:
        before: Still | None = None
        stills = cast(Any, self.sequence.stills(start))
        with closing(stills):
            for still in stills:
                if self.job.frames is not None and still.index >= self.job.frames:
                    return
                if self.part.last is not None and still.index > self.part.last + 1:
                    return
                if still.error is not None and is_counted:
                    self.run.fail(still.error)
                if before is not None:
                    if before.error is None and still.error is None:
                        outcome = self._pair(before, still, compute, film)
                    else:
                        outcome = "there" if self.files.are_done(before.index) else "failed"
                    if is_counted:
                        self._count(outcome)
                before = still
        if before is not None and before.error is None:
            self._note_end(before)

    def _pair(
        self, before: Still, after: Still, compute: range | None, film: ClipWriter | None
    ) -> str:
        """What became of a pair: "done", "there" or "failed"."""
        pair, result = before.index, None
        is_done = self.files.are_done(pair)
        must = not is_done if compute is None else pair in compute
        if must:
            result = self._flow(before, after)
            if result is None:
                return "failed"
            if not is_done and not self.files.write(pair, result, before, self._scale_of(result)):
                return "failed"
            if self.job.warm_start and self.job.root is not None:
                warm.write(self._state_path(), self.stream, pair)
        is_shown = film is not None and (result is not None or is_done)
        if is_shown and cast(ClipWriter, film).write(self._panel(pair, before, result)):
            self.shown.append(pair)
        if result is None and not is_done:
            return "failed"
        if not is_done and self.sequence.pair_name(pair) in self.changed:
            self.run.summary.changed += 1
        return "there" if is_done else "done"

    def _flow(self, before: Still, after: Still) -> FlowResult | None:
        """The result of a pair; None, and the reason noted, where there is none."""
        if before.size == after.size:
            self.run.say_plan(before)
        try:
            if self.position != before.index:
                self.stream.reset()
                self.stream.push(as_frame(before.image, before.label))
                if self.state is not None and self.state.pair + 1 == before.index:
                    warm.restore(self.stream, self.state)
            result = self.stream.push(as_frame(after.image, after.label))
            assert result is not None
            check_finite(result, before, after)
        except LcvError as error:
            self.position = None
            self.run.fail(error)
            return None
        except (MemoryError, RuntimeError) as error:
            raise Abandoned(out_of_memory(error, before.label)) from error
        self.position = after.index
        self.run.summary.add_notes(result.notes)
        return result

    def _panel(self, pair: int, before: Still, result: FlowResult | None) -> np.ndarray:
        assert before.image is not None
        scale = self._scale_of(result)
        if result is not None:
            return panel(before.image, result.flow, scale, self.job.arrows)
        assert self.run.folder is not None
        names = self.sequence.name, self.sequence.pair_name(pair)
        arrows = self.job.arrows
        return stored_panel(self.run.folder, self.job.outputs, names, before.image, scale, arrows)

    @property
    def _is_drawn(self) -> bool:
        return bool(self.job.clip) or any(output.what == "png" for output in self.job.outputs)

    def _scale_of(self, result: FlowResult | None) -> float:
        """The scale of this sequence's pictures; of this one's alone where there is no other."""
        if not self._is_drawn:
            return 1.0
        record, scale = self.record, self.scale
        if not scale.is_settled:
            known = None if record is None else record.scale(self.sequence)
            pairs = self.run.pairs_of(self.sequence)
            if known is None and scale.needs_samples(pairs):
                self.run.listener.say(
                    f"{clip_name(self.sequence)}: looking at {len(sample_pairs(pairs or 0))} of "
                    f"{pairs} pairs for the scale of its pictures"
                )
            scale.settle(pairs, known)
            if scale.common is not None and self.job.scale is None and record is not None:
                scale.common = record.note_scale(self.sequence, scale.common)
        return scale.of(None if result is None else result.flow)

    def _look(self) -> tuple[float | None, bool]:
        """What, besides settings and frames, decides how the film looks: its scale, and arrows."""
        known = None if self.record is None else self.record.scale(self.sequence)
        return self.job.scale or known, self.job.arrows

    def _state_path(self) -> Path:
        assert self.job.root is not None
        return warm.state_path(self.job.root, clip_name(self.sequence))

    def _note_end(self, last: Still) -> None:
        """The sequence has been read to its end: its length is known from now on."""
        if last.index == 0:
            self.run.fail(
                FileError(f"{last.label} is its only one; flow needs at least two frames")
            )
        elif self.record is not None and isinstance(self.sequence, Film):
            self.record.note_frames(last.index + 1)

    def _clip_path(self) -> Path:
        if isinstance(self.job.clip, Path):
            return self.job.clip
        assert self.run.folder is not None
        return self.run.folder.clip(clip_name(self.sequence))

    def _note_film(self, film: ClipWriter) -> None:
        if film.is_refused and self.record is not None:
            self.record.withdraw(clip_name(self.sequence), [CLIPS])
        if film.failed is not None:
            self.run.fail(film.failed)
        elif film.count:
            self.run.summary.clips.append(film.path)
            if self.record is not None:
                self.record.note_clip(self.sequence, self.shown, self._look())

    def _count(self, outcome: str, pairs: int = 1) -> None:
        summary = self.run.summary
        setattr(summary, outcome, getattr(summary, outcome) + pairs)
        self.run.listener.advance(pairs, computed=outcome == "done")

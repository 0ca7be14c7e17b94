"""The files of a sequence's pairs: which are there, whole and this job's own, and writing the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Many
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import FileError
from lcv.predict.admission import not_ours
from lcv.predict.claims import as_text
from lcv.predict.clips import ClipWriter
from lcv.predict.outputs import CLIPS, Output, is_whole, write_output
from lcv.predict.result import FlowResult
from lcv.predict.sources import Sequence, Still

if TYPE_CHECKING:
    from lcv.predict.jobs import Run


class PairFiles:
    """Files of the pairs of `sequence`; none where a clip is all that is wanted."""

    def __init__(self, run: Run, sequence: Sequence) -> None:
        self.run, self.sequence = run, sequence
        self.record = run.record_of(sequence)

    def of(self, pair: int) -> list[tuple[Output, Path]]:
        """All outputs of a pair that are asked for, and their places."""
        folder, outputs = self.run.folder, self.run.job.outputs
        if folder is None:
            return []
        names = self.sequence.name, self.sequence.pair_name(pair)
        return [(output, folder.path(output, *names)) for output in outputs]

    def places(self, pairs: Iterable[int]) -> Iterator[Path]:
        return (path for pair in pairs for _, path in self.of(pair))

    def are_done(self, pair: int) -> bool:
        """Whether all of a pair's are there, whole, and this job's."""
        files = self.of(pair)
        return bool(files) and all(self._is_done(pair, *file) for file in files)

    def write(self, pair: int, result: FlowResult, before: Still, scale: float) -> bool:
        """Write what is missing of a pair; returns False, and notes why, where a place is taken."""
        assert before.image is not None
        missing = [file for file in self.of(pair) if not self._is_done(pair, *file)]
        own = {output for output, _ in missing if self._replaces or self._is_own(pair, output)}
        for output, path in missing:
            if output not in own and os.path.lexists(path):
                assert self.record is not None
                self.run.fail(not_ours(self.record, path))
                return False
        self.run.settle(self.sequence, pair, [as_text(output) for output, _ in missing])
        for number, (output, path) in enumerate(missing):
            try:
                write_output(path, output, result, before.image, scale, overwrite=output in own)
            except FileError:
                if output in own or not os.path.lexists(path):
                    raise
                # It appeared since we looked.
                assert self.record is not None
                left = [as_text(output) for output, _ in missing[number:] if output not in own]
                self.record.withdraw(self.sequence.pair_name(pair), left)
                self.run.fail(not_ours(self.record, path))
                return False
        return True

    def film(self, path: Path) -> ClipWriter:
        """The film of the sequence, given up at once where its place is taken."""
        film = ClipWriter(path, self.sequence.rate, overwrite=self._owns_film)
        self._give_up_if_taken(film)
        return film

    def settle_film(self, film: ClipWriter, pairs: Many[int]) -> None:
        """Called when all `pairs` are in the film, before it appears."""
        self._give_up_if_taken(film)
        if pairs and film.failed is None:
            self.run.settle(self.sequence, pairs[-1], [CLIPS])

    @property
    def _owns_film(self) -> bool:
        if self.record is None:
            return self.run.job.overwrite
        return self._replaces or self.record.owns_clip(self.sequence)

    def _give_up_if_taken(self, film: ClipWriter) -> None:
        is_free = self._owns_film or not os.path.lexists(film.path)
        if self.record is not None and film.failed is None and not is_free:
            film.give_up(not_ours(self.record, film.path))

    def _is_own(self, pair: int, output: Output) -> bool:
        record = self.record
        return record is not None and record.owns(self.sequence, pair, as_text(output))

    def _is_done(self, pair: int, output: Output, path: Path) -> bool:
        return self._is_own(pair, output) and is_whole(path, output)

    @property
    def _replaces(self) -> bool:
        return self.record is not None and self.record.may_replace

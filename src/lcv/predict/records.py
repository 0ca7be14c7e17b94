"""What the outputs of a sequence were made from, so that none outlives its frames.

A record (`lcv.predict.record_file`) is written before the outputs that it tells of, and each of them is
told of in a log (`lcv.predict.journal`) before it appears; outputs are removed before the record that
tells of them is changed. So, whenever a run is killed, what lies in the folder is either what the
record and its logs say, or missing. What a sequence is made from is one: where it is another now, or
where it is begun anew (`lcv.predict.anew`), all that depends on it goes together, whichever part of it
this process is to make. Only what a record tells of is ever removed unasked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.files import only_one
from lcv.predict import admission
from lcv.predict.admission import newer
from lcv.predict.claims import NAMELESS, Claim, ClaimedFiles, as_text, clip_name, key_of
from lcv.predict.journal import Journal, Names, command_of, made, without
from lcv.predict.manifest import OR_ANEW, RECORDS
from lcv.predict.outputs import CLIPS, Output
from lcv.predict.record_file import Known, RecordFile
from lcv.predict.scale import sampled_from
from lcv.predict.settings import combined, difference
from lcv.predict.shards import Shard
from lcv.predict.sources import EVERY_PAIR, FrameFiles, Sequence, fingerprint
from lcv.predict.unmade import add_unmade, count_up, end_at, note_unmade, tells_of_clip, unmake

# Given pairs whose frames changed, all that have to be made again.
Spread = Callable[[Sequence, list[int]], list[int]]


class Record:
    """The record of one name, for the sequences `claims` that have it.

    outputs: that are asked for now
    clip:    whether a film is asked for too
    chained: whether a pair depends on the frame before it
    adopt:   makes the job one with these settings, before a record tells of them
    changed: names of pairs whose outputs were removed because their frames had changed
    pending: of the outputs that the record tells of, those that nobody has begun to make
    """

    def __init__(
        self,
        root: Path,
        claims: list[Claim],
        settings: dict[str, Any],
        outputs: Iterable[Output],
        clip: bool,
        chained: bool,
        shard: Shard,
        adopt: Callable[[], None],
    ) -> None:
        self.root, self.claims, self.settings = root, claims, settings
        self.files = ClaimedFiles(root)
        key = key_of(claims[0].sequence)
        self.is_nameless = key == NAMELESS
        called = repr(claims[0].sequence.pair_name(0) if self.is_nameless else key)
        place = f"{RECORDS}.json" if self.is_nameless else f"{RECORDS}/{key}.json"
        self.file = RecordFile(root / place, called)
        self.outputs = {as_text(output) for output in outputs} | ({CLIPS} if clip else set())
        self.chained, self.adopt = chained, adopt
        self.changed: set[str] = set()
        self.may_replace = False
        self.pending: Names = {}
        names = [claim.all_names for claim in claims] if self.is_nameless else []
        command = command_of(settings, sorted(self.outputs), claims[0].limit, names)
        self.journal = Journal(self.file.path, command, shard)
        self._is_admitted = self._is_settled = False

    def look(self) -> None:
        """Hash what the pairs are made from; each file is read once."""
        hash_of = cache(fingerprint)
        self.pairs: dict[str, str] = {}
        self.seconds: dict[str, str] = {}
        for claim in self.claims:
            self.pairs |= claim.sequence.made_from(hash_of, claim.pairs, self.chained)
            if isinstance(claim.sequence, FrameFiles):
                self.seconds |= claim.sequence.seconds(claim.pairs)

    def read(self) -> Known | None:
        """What is recorded and logged now."""
        # In this order: what another process moves meanwhile from its log to the record is seen.
        logs = self.journal.logs()
        there = self.file.read()
        left = {} if there is None else without(there.unmade, made(logs))
        self.pending = {output: {*names} for output, names in left.items()}
        return there

    def check(self) -> None:
        """Refuse what would be mixed with something else in the folder."""
        there = self.read()
        if there is not None:
            other = difference(there.settings, self.settings)
            if other is not None:
                raise FileError(
                    f"{self.root}: its outputs of {self.file.called} are of another job: {other}. "
                    f"{OR_ANEW}"
                )
            for claim in self.claims:
                admission.check_unmixed(self, there, claim)
            admission.check_same_input(self, there)
        found = admission.strange(self, there)
        # Another process of this job may just have written it, and told of it before.
        if found is not None and admission.strange(self, self.read()) is not None:
            raise admission.not_ours(self, found)

    def admit(self, spread: Spread) -> None:
        """Remove what is no longer true; done once."""
        if self._is_admitted:
            return
        self._is_admitted = True
        if self._changed(self.read()):
            with self.file.alone():
                self._remove_changed(spread)

    def settle(self, sequence: Sequence, pair: int, what: Iterable[str]) -> None:
        """Called before anything of a pair is written: from now on the record tells of it.

        what: outputs that are about to appear, among them "clip" for that of the sequence
        """
        if not self._is_admitted:
            return
        if not self._is_settled or not self.tells_of(sequence, pair):
            if not isinstance(sequence, FrameFiles):
                admission.check_free(self, sequence, pair)
            self.adopt()
            with self.file.alone():
                self._write_change(lambda known: None, sequence, pair)
                if not self._is_settled:
                    self.journal.begin_unless_begun()
            if not self._is_settled:
                self.read()
            self._is_settled = True
        for name, outputs in (
            (sequence.pair_name(pair), {*what} - {CLIPS}),
            (clip_name(sequence), {*what} & {CLIPS}),
        ):
            told = [each for each in outputs if name in self.pending.get(each, ())]
            if told:
                with only_one(self.file.path):
                    self.journal.tell("+", name, told)
                for each in told:
                    self.pending[each].discard(name)

    def withdraw(self, name: str, outputs: Iterable[str]) -> None:
        """What was settled of a pair, or a clip, is not written after all: its place is taken."""
        told = [*outputs]
        with self.file.alone():
            self.journal.withdraw({name}, told)
            # Another shard may have put it into the record already.
            self._write_change(lambda known: note_unmade(known, {name}, told))
        self.read()

    def tells_of(self, sequence: Sequence, pair: int) -> bool:
        """Whether the record tells of a pair, made or not."""
        known = self.file.known
        if known is None:
            return False
        if isinstance(sequence, FrameFiles):
            return sequence.pair_name(pair) in known.pairs
        return pair < known.numbers

    def owns(self, sequence: Sequence, pair: int, output: str) -> bool:
        """Whether an output of a pair, if it is there, is this job's."""
        known = self.file.known
        is_told = known is not None and output in known.outputs and self.tells_of(sequence, pair)
        return is_told and sequence.pair_name(pair) not in self.pending.get(output, ())

    def owns_clip(self, sequence: Sequence) -> bool:
        """Whether the film of a sequence, if it is there, is this job's."""
        is_begun = clip_name(sequence) not in self.pending.get(CLIPS, ())
        return tells_of_clip(self.file.known, sequence) and is_begun

    @property
    def frames(self) -> int | None:
        """Of a film, if it has been read to its end."""
        return None if self.file.known is None else self.file.known.frames

    def note_frames(self, frames: int) -> None:
        """A film has been read to its end, and there is nothing of it beyond."""

        def add(known: Known) -> None:
            known.frames = frames
            end_at(known, max(0, frames - 1))

        if self.file.read() is not None:
            self._change(add)

    def scale(self, sequence: Sequence) -> float | None:
        """The scale of a sequence's pictures, if somebody has found it."""
        known = self.file.known
        return None if known is None else known.scales.get(clip_name(sequence))

    def note_scale(self, sequence: Sequence, scale: float) -> float:
        """The scale of a sequence's pictures: this one, unless another process was first."""

        def add(known: Known) -> None:
            name = clip_name(sequence)
            if name not in known.scales:
                known.scales[name], known.sampled[name] = scale, self.sample(sequence, known)

        self._change(add)
        known = self.file.known
        assert known is not None
        return known.scales[clip_name(sequence)]

    def sample(self, sequence: Sequence, known: Known) -> str:
        """A hash of the frames that a scale is found in, as they are now."""
        (claim,) = [each for each in self.claims if each.sequence is sequence]
        names = claim.names_of(known)[: claim.limit]
        return sampled_from([self.pairs.get(n, self.pairs.get(EVERY_PAIR, "")) for n in names])

    def shows(self, sequence: Sequence, pairs: Iterable[int], how: tuple[Any, ...]) -> bool:
        """Whether the film of a sequence is recorded to show these pairs. how: they are drawn"""
        known = self.file.known
        said = None if known is None else known.clips.get(clip_name(sequence))
        return said is not None and said == self._shown(sequence, pairs, how)

    def note_clip(
        self, sequence: Sequence, pairs: Iterable[int] | None, how: tuple[Any, ...]
    ) -> None:
        """What the film shows from now on; None: nobody knows, since it is being made."""
        name = clip_name(sequence)
        if pairs is not None:
            said = self._shown(sequence, pairs, how)
            self._change(lambda known: known.clips.update({name: said}))
        elif self.file.known is not None and name in self.file.known.clips:
            self._change(lambda known: known.clips.pop(name, None))

    def left(self) -> dict[str, int]:
        """Pairs that the input does not have any more, and how many outputs of each are there."""
        known = self.file.known
        if known is None or self.is_nameless:
            return {}
        return self.files.left(self.claims[0], known)

    def _shown(self, sequence: Sequence, pairs: Iterable[int], how: tuple[Any, ...]) -> str:
        known = {} if self.file.known is None else self.file.known.pairs
        names = [sequence.pair_name(pair) for pair in pairs]
        told = [(name, known.get(name, known.get(EVERY_PAIR))) for name in names]
        text = json.dumps([self.settings, how, told], sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:20]

    def _change(self, how: Callable[[Known], Any]) -> None:
        self.adopt()
        with self.file.alone():
            self._write_change(how)

    def _write_change(
        self, how: Callable[[Known], Any], sequence: Sequence | None = None, pair: int = -1
    ) -> None:
        there = self.file.read()
        mine = self.with_mine(there, sequence, pair)
        how(mine)
        if mine != there:
            self.file.write(mine)
        if there is None:
            self.journal.begin_unless_begun()

    def with_mine(
        self, there: Known | None, sequence: Sequence | None = None, pair: int = -1
    ) -> Known:
        """A record that tells of all that is asked for now, and of what it did before."""
        mine = Known(self.settings) if there is None else deepcopy(there)
        mine.settings = combined(mine.settings, self.settings)
        mine.outputs = sorted({*mine.outputs, *self.outputs})
        mine.seconds |= self.seconds
        mine.pairs |= {n: newer(mine.pairs.get(n), now) for n, now in self.pairs.items()}
        for claim in self.claims:
            if claim.is_numbered:
                mine.numbers = max(mine.numbers, claim.count(mine.frames))
        add_unmade(self.claims, there, mine)
        if sequence is not None and not isinstance(sequence, FrameFiles):
            count_up(mine, pair)
            # It is about to be made, so that there is no need to say that it has not been.
            mine.numbers = max(mine.numbers, pair + 1)
        return mine

    def _changed(self, there: Known | None) -> set[str]:
        known = {} if there is None else there.pairs
        return {
            name
            for name, now in self.pairs.items()
            if name in known and newer(known[name], now) != known[name]
        }

    def _remove_changed(self, spread: Spread) -> None:
        there = self.read()
        if there is None:
            return
        changed, now = self._changed(there), deepcopy(there)
        for claim in self.claims:
            stale = [number for number, name in enumerate(claim.names) if name in changed]
            if stale:
                names = {claim.names[number] for number in spread(claim.sequence, stale)}
                self.changed |= unmake(self, now, claim, names, there.outputs)
        for name in changed:
            now.pairs[name] = newer(now.pairs[name], self.pairs[name])
            now.seconds[name] = self.seconds[name]
        self.file.write(now)
        self.read()

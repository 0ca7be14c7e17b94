"""What the outputs of a sequence were made from, so that none outlives its frames.

A record (`lcv.predict.record_file`) is written before the outputs that it tells of, and outputs are
removed before the record that tells of them is changed. So, whenever a run is killed, what lies in
the folder is either what the record says, or missing. What a sequence is made from is one: where it
is another now, or where it is begun anew, all that depends on it goes together, whichever part of it
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
from lcv.predict import warm
from lcv.predict.admission import check_same_input, check_unmixed, is_as_recorded, newer, strange
from lcv.predict.claims import NAMELESS, Claim, ClaimedFiles, as_text, clip_name, key_of
from lcv.predict.manifest import ANEW
from lcv.predict.outputs import CLIPS, Output
from lcv.predict.record_file import Known, RecordFile
from lcv.predict.settings import combined, difference
from lcv.predict.sources import EVERY_PAIR, FrameFiles, Sequence, fingerprint

FOLDER = "made"


# Given pairs whose frames changed, all that have to be made again.
Spread = Callable[[Sequence, list[int]], list[int]]


class Record:
    """The record of one name, for the sequences `claims` that have it.

    outputs: that are asked for now
    clip:    whether a film is asked for too
    chained: whether a pair depends on the frame before it
    changed: names of pairs whose outputs were removed because their frames had changed
    """

    def __init__(
        self,
        root: Path,
        claims: list[Claim],
        settings: dict[str, Any],
        outputs: Iterable[Output],
        clip: bool,
        chained: bool,
    ) -> None:
        self.root, self.claims, self.settings = root, claims, settings
        self.files = ClaimedFiles(root)
        key = key_of(claims[0].sequence)
        self.is_nameless = key == NAMELESS
        called = repr(claims[0].sequence.pair_name(0) if self.is_nameless else key)
        place = f"{FOLDER}.json" if self.is_nameless else f"{FOLDER}/{key}.json"
        self.file = RecordFile(root / place, called)
        self.outputs = {as_text(output) for output in outputs} | ({CLIPS} if clip else set())
        self.chained = chained
        self.changed: set[str] = set()
        self.may_replace = False
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

    def check(self) -> None:
        """Refuse what would be mixed with something else in the folder."""
        there = self.file.read()
        if there is not None:
            other = difference(there.settings, self.settings)
            if other is not None:
                raise FileError(
                    f"{self.root}: its outputs of {self.file.called} are of another job: {other}. "
                    f"{ANEW}"
                )
            for claim in self.claims:
                check_unmixed(self, there, claim)
            check_same_input(self, there)
        found = strange(self, there)
        # Another process of this job may just have written it, and its record before.
        if found is not None and strange(self, self.file.read()) is not None:
            raise FileError(
                f"{found}: exists already, but {self.file.path} does not say that this job made it. "
                f"{ANEW}"
            )

    def begin_anew(self, is_shared: bool) -> None:
        """Remove what was made of the sequences, by whichever settings, of whatever kind.

        is_shared: other processes make other parts of them; as long as they are made from the same,
        with the same settings, what those have made stays
        """
        self.may_replace = True
        with self.file.alone():
            there = self.file.read(lenient=True)
            is_other = there is not None and bool(difference(there.settings, self.settings))
            outputs = {*self.outputs, *([] if there is None else there.outputs)}
            # A folder that is empty now may be the one that another process is about to write to.
            kinds = {each.partition("/")[0] for each in self.outputs}
            unused = [each for each in outputs if each.partition("/")[0] not in kinds]
            left = deepcopy(there)
            for claim in self.claims:
                is_same = there is not None and not is_other and is_as_recorded(self, there, claim)
                if is_shared and (there is None or is_same) and not claim.is_any:
                    continue
                self._remove(claim, claim.own_names, claim.own_numbers, self.outputs)
                if left is not None and is_shared and is_same:
                    numbers = range(left.numbers)[claim.first : claim.stop]
                    self._remove(claim, claim.own_names, numbers, left.outputs)
                elif left is not None:
                    told = claim.all_names if self.is_nameless else left.names
                    self._remove(claim, told, range(left.numbers), left.outputs)
                    left.forget(told, clip_name(claim.sequence))
                if left is not None:
                    left.clips.pop(clip_name(claim.sequence), None)
                self.files.remove_empty(claim.sequence, unused)
            if left is None or is_other or not left.pairs:
                # Of other settings, what is not in this command is no one's now.
                self.file.remove()
            elif left != there:
                self.file.write(left)

    def drop_other(self) -> None:
        """Remove what was made with other settings, of sequences that other processes are to make."""
        there = self.file.read(lenient=True)
        if there is not None and difference(there.settings, self.settings) is not None:
            self.begin_anew(is_shared=True)

    def admit(self, spread: Spread) -> None:
        """Remove what is no longer true; done once."""
        if self._is_admitted:
            return
        self._is_admitted = True
        if self._changed(self.file.read()):
            with self.file.alone():
                self._remove_changed(spread)

    def settle(self, sequence: Sequence, pair: int) -> None:
        """Called before anything of a pair is written: from now on the record tells of it."""
        if not self._is_admitted or (self._is_settled and self.tells_of(sequence, pair)):
            return
        self._is_settled = True
        if not isinstance(sequence, FrameFiles):
            self._check_free(sequence, pair)
        self._change(lambda known: None, sequence, pair)

    def tells_of(self, sequence: Sequence, pair: int) -> bool:
        """Whether a pair's outputs, if they are there, are this job's; those with names were checked."""
        known = self.file.known
        return isinstance(sequence, FrameFiles) or (known is not None and pair < known.numbers)

    @property
    def frames(self) -> int | None:
        """Of a film, if it has been read to its end."""
        return None if self.file.known is None else self.file.known.frames

    def note_frames(self, frames: int) -> None:
        """A film has been read to its end, and there is nothing of it beyond."""

        def add(known: Known) -> None:
            known.frames, known.numbers = frames, max(0, frames - 1)

        if self.file.read() is not None:
            self._change(add)

    def scale(self, sequence: Sequence) -> float | None:
        """The scale of a sequence's pictures, if somebody has found it."""
        known = self.file.known
        return None if known is None else known.scales.get(clip_name(sequence))

    def note_scale(self, sequence: Sequence, scale: float) -> float:
        """The scale of a sequence's pictures: this one, unless another process was first."""
        self._change(lambda known: known.scales.setdefault(clip_name(sequence), scale))
        known = self.file.known
        assert known is not None
        return known.scales[clip_name(sequence)]

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
        sequence = self.claims[0].sequence
        now = set(sequence.names) if isinstance(sequence, FrameFiles) else set()
        counts = {
            name: len(self.files.named(sequence, [name], known.outputs))
            for name in sorted(known.names - now)
        }
        return {f"{sequence.name}/{name}": count for name, count in counts.items() if count}

    def _shown(self, sequence: Sequence, pairs: Iterable[int], how: tuple[Any, ...]) -> str:
        known = {} if self.file.known is None else self.file.known.pairs
        names = [sequence.pair_name(pair) for pair in pairs]
        told = [(name, known.get(name, known.get(EVERY_PAIR))) for name in names]
        text = json.dumps([self.settings, how, told], sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:20]

    def _change(
        self, how: Callable[[Known], Any], sequence: Sequence | None = None, pair: int = -1
    ) -> None:
        with self.file.alone():
            there = self.file.read()
            mine = self._with_mine(there, sequence, pair)
            how(mine)
            if mine != there:
                self.file.write(mine)

    def _with_mine(self, there: Known | None, sequence: Sequence | None, pair: int) -> Known:
        mine = Known(self.settings) if there is None else deepcopy(there)
        mine.settings = combined(mine.settings, self.settings)
        mine.outputs = sorted({*mine.outputs, *self.outputs})
        mine.seconds |= self.seconds
        mine.pairs |= {n: newer(mine.pairs.get(n), now) for n, now in self.pairs.items()}
        for claim in self.claims:
            if claim.is_numbered:
                asked = claim.count(mine.frames)
                mine.numbers = max(mine.numbers, asked, pair + 1 if sequence is not None else 0)
        return mine

    def _check_free(self, sequence: Sequence, pair: int) -> None:
        """A film that is longer than it says, or a stream, comes to a number: is it taken?"""
        if self.file.known is not None and pair < self.file.known.numbers:
            return
        taken = self.files.numbered(sequence, range(pair, pair + 1), self.outputs)
        if taken and not self.may_replace:
            raise FileError(
                f"{taken[0]}: exists already, but {self.file.path} does not say that this job made "
                f"it. {ANEW}"
            )
        self.files.remove(taken)

    def _changed(self, there: Known | None) -> set[str]:
        known = {} if there is None else there.pairs
        return {
            name
            for name, now in self.pairs.items()
            if name in known and newer(known[name], now) != known[name]
        }

    def _remove_changed(self, spread: Spread) -> None:
        there = self.file.read()
        if there is None:
            return
        changed, now = self._changed(there), deepcopy(there)
        for claim in self.claims:
            stale = [number for number, name in enumerate(claim.names) if name in changed]
            if stale:
                for number in spread(claim.sequence, stale):
                    name = claim.names[number]
                    if self.files.remove(self.files.named(claim.sequence, [name], there.outputs)):
                        self.changed.add(name)
                self.files.remove_clip(claim.sequence, there.outputs)
                now.clips.pop(clip_name(claim.sequence), None)
        for name in changed:
            now.pairs[name] = newer(now.pairs[name], self.pairs[name])
            now.seconds[name] = self.seconds[name]
        self.file.write(now)

    def _remove(
        self, claim: Claim, names: Iterable[str], numbers: range, outputs: Iterable[str]
    ) -> None:
        self.files.remove(self.files.named(claim.sequence, names, outputs))
        self.files.remove(self.files.numbered(claim.sequence, numbers, outputs))
        self.files.remove_clip(claim.sequence, outputs)
        warm.remove(warm.state_path(self.root, clip_name(claim.sequence)))

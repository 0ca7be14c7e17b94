"""What the outputs of a sequence were made from, pair by pair, so that none outlives its frames.

OUT/made/SEQUENCE.json, or OUT/made.json for all pairs of sequences that have no name:

    settings   those that decide numbers
    outputs    every kind and ending that was asked for
    arrows     whether the clip shows them; null where there is none
    pairs      of each pair the hashes of its frames' files

A record is written before the outputs that it tells of, and outputs are removed before the record
that tells of them is changed. So, whenever a run is killed, what lies in the folder is either what
the record says, or missing. Only what a record tells of is ever removed unasked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.files import only_one, whole_file
from lcv.predict.claims import NAMELESS, Claim, ClaimedFiles, as_text, key_of
from lcv.predict.manifest import ANEW
from lcv.predict.outputs import CLIPS, ENDINGS, KINDS, Output, make_folder, sweep
from lcv.predict.settings import combined, difference
from lcv.predict.sources import EVERY_PAIR, UNKNOWN, Sequence, fingerprint

FOLDER = "made"


# Given pairs whose frames changed, all that have to be made again.
Spread = Callable[[Sequence, list[int]], list[int]]


class Record:
    """The record of one name, for the sequences `claims` that have it.

    outputs: that are asked for now
    arrows:  whether a clip is to show them; None where none is asked for
    changed: names of pairs whose outputs were removed because their frames had changed
    """

    def __init__(
        self,
        root: Path,
        claims: list[Claim],
        settings: dict[str, Any],
        outputs: Iterable[Output],
        arrows: bool | None,
    ) -> None:
        self.root, self.claims, self.settings = root, claims, settings
        self.files = ClaimedFiles(root)
        self.key = key_of(claims[0].sequence)
        self.path = root / (
            f"{FOLDER}.json" if self.key == NAMELESS else f"{FOLDER}/{self.key}.json"
        )
        self.outputs = {as_text(output) for output in outputs} | (
            set() if arrows is None else {CLIPS}
        )
        self.arrows = arrows
        self.changed: set[str] = set()
        self._is_admitted = self._is_settled = False

    def drop_other(self) -> None:
        """Remove what was made with other settings, of the sequences in this command alone."""
        content = self._read(lenient=True)
        if content is not None and difference(content["settings"], self.settings) is not None:
            with self._alone():
                self._begin_anew()

    def admit(self, overwrite: bool, chained: bool, spread: Spread) -> None:
        """Refuse what would be mixed, remove what is no longer true; done once.

        overwrite: refuse nothing, and remove everything that this process is to make
        chained:   whether a pair depends on the frame before it
        """
        if self._is_admitted:
            return
        self._is_admitted = True
        hash_of = cache(fingerprint)
        self.pairs: dict[str, str] = {}
        for claim in self.claims:
            self.pairs |= claim.sequence.made_from(hash_of, claim.pairs, chained)
        if overwrite:
            with self._alone():
                self._begin_anew()
        else:
            self._check(self._read())
        there = self._read()
        if self._changed(there):
            with self._alone():
                self._remove_changed(spread)
        if there is not None and self.arrows not in (None, there["arrows"]):
            for claim in self.claims:
                self.files.remove_clip(claim.sequence, there["outputs"])

    def settle(self) -> None:
        """Called before anything is written: from now on the record tells of it."""
        if self._is_settled or not self._is_admitted:
            return
        self._is_settled = True
        there = self._read()
        if there is None or there != self._with_mine(there):
            with self._alone():
                self._write(self._with_mine(self._read()))

    def _with_mine(self, there: dict[str, Any] | None) -> dict[str, Any]:
        there = there or {"settings": self.settings, "outputs": [], "arrows": None, "pairs": {}}
        known = there["pairs"]
        return {
            "settings": combined(there["settings"], self.settings),
            "outputs": sorted({*there["outputs"], *self.outputs}),
            "arrows": there["arrows"] if self.arrows is None else self.arrows,
            "pairs": known
            | {name: _newer(known.get(name), now) for name, now in self.pairs.items()},
        }

    def _changed(self, there: dict[str, Any] | None) -> set[str]:
        known = {} if there is None else there["pairs"]
        return {
            name
            for name, now in self.pairs.items()
            if name in known and _newer(known[name], now) != known[name]
        }

    def _remove_changed(self, spread: Spread) -> None:
        there = self._read()
        if there is None:
            return
        changed = self._changed(there)
        for claim in self.claims:
            stale = [number for number, name in enumerate(claim.names) if name in changed]
            if stale:
                for number in spread(claim.sequence, stale):
                    name = claim.names[number]
                    if self.files.remove_pair(claim.sequence, name, there["outputs"]):
                        self.changed.add(name)
                self.files.remove_clip(claim.sequence, there["outputs"])
            if claim.is_numbered and EVERY_PAIR in changed:
                self.files.remove_numbered(claim, there["outputs"])
                self.files.remove_clip(claim.sequence, there["outputs"])
        pairs = there["pairs"] | {
            name: _newer(there["pairs"][name], self.pairs[name]) for name in changed
        }
        self._write({**there, "pairs": pairs})

    def _begin_anew(self) -> None:
        """Remove what this process is to make; all that has the name, if it is of other settings."""
        there = self._read(lenient=True)
        known = {} if there is None else there["pairs"]
        outputs = sorted({*(() if there is None else there["outputs"]), *self.outputs})
        is_other = there is not None and difference(there["settings"], self.settings) is not None
        # A folder that is empty now may be the one that another process is about to write to.
        kinds = {each.partition("/")[0] for each in self.outputs}
        unused = [each for each in outputs if each.partition("/")[0] not in kinds]
        gone: set[str] = set()
        for claim in self.claims:
            own = claim if not is_other else Claim(claim.sequence, claim.pairs)
            names = {name for number, name in enumerate(own.names) if own.owns(number)}
            if is_other and self.key != NAMELESS:
                names |= {*known} - {EVERY_PAIR}
            for name in names:
                self.files.remove_pair(claim.sequence, name, outputs)
            gone |= names
            if own.is_numbered:
                self.files.remove_numbered(own, outputs)
                gone |= {EVERY_PAIR} if own.first == 0 and own.stop is None else set()
            self.files.remove_clip(claim.sequence, outputs)
            self.files.remove_empty(claim.sequence, unused)
        kept = {} if is_other else {name: v for name, v in known.items() if name not in gone}
        if there is not None and kept:
            self._write({**there, "pairs": kept})
        else:
            # Nothing of it is left; of other settings, what is not in this command is no one's now.
            self.path.unlink(missing_ok=True)

    def _check(self, there: dict[str, Any] | None) -> None:
        known = {} if there is None else there["pairs"]
        root = self.root
        if there is not None:
            other = difference(there["settings"], self.settings)
            if other is not None:
                raise FileError(
                    f"{root}: its outputs of {self._called} are of another job: {other}. {ANEW}"
                )
            if any(claim.sequence.is_live for claim in self.claims) and any(
                self.files.numbered(Claim(claim.sequence, None), output)
                for claim in self.claims
                for output in there["outputs"]
            ):
                raise FileError(
                    f"{root}: already has outputs of {self.key}, which cannot be seen a second "
                    f"time to go on with them; choose another folder or say --overwrite"
                )
            if self.key == NAMELESS:
                known = {name: value for name, value in known.items() if name in self.pairs}
            before, now = _hashes(known.values()), _hashes(self.pairs.values())
            if before and now and not before & now:
                raise FileError(
                    f"{root}: already has outputs of another input that is called {self._called}, or "
                    f"all of this one has been changed since. {ANEW}"
                )
        strange = self._strange(there)
        # Another process of this job may just have written it, and its record before.
        if strange is not None and self._strange(self._read()) is not None:
            raise FileError(
                f"{strange}: exists already, but {self.path} does not say that this job made it. {ANEW}"
            )

    def _strange(self, there: dict[str, Any] | None) -> Path | None:
        """A file in the place of an output that no record tells of."""
        pairs = set() if there is None else {*there["pairs"]}
        added = self.outputs - set(() if there is None else there["outputs"])
        places: Iterable[Path]
        for claim in self.claims:
            sequence, new = claim.sequence, [n for n in claim.names if n not in pairs]
            for output in sorted(self.outputs - {CLIPS}):
                if claim.is_numbered:
                    is_new = output in added or EVERY_PAIR not in pairs
                    places = self.files.numbered(Claim(sequence, None), output) if is_new else ()
                else:
                    names = claim.names if output in added else new
                    places = (self.files.path(sequence, name, output) for name in names)
                found = next((path for path in places if path.exists()), None)
                if found is not None:
                    return found
            if CLIPS in added and self.files.clip(sequence).exists():
                return self.files.clip(sequence)
        return None

    @property
    def _called(self) -> str:
        if self.key != NAMELESS:
            return repr(self.key)
        return repr(self.claims[0].sequence.pair_name(0))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_folder(self.path.parent)
        with only_one(self.path):
            sweep(self.path)
            yield

    def _read(self, lenient: bool = False) -> dict[str, Any] | None:
        """What is recorded. lenient: a damaged record is none"""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError):
            content = None
        if _is_sound(content):
            return dict(content)
        if lenient:
            return None
        raise FileError(
            f"{self.path}: is damaged, so that nobody knows what the outputs of {self._called} were "
            f"made from. {ANEW}"
        )

    def _write(self, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        with whole_file(self.path, overwrite=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def _newer(known: str | None, now: str) -> str:
    """The hashes of a pair's frames as they are now; as they were, of those that cannot be read."""
    if known is None:
        return now
    before, after = known.split(" "), now.split(" ")
    if len(before) != len(after):
        return now
    return " ".join(b if a == UNKNOWN else a for a, b in zip(after, before, strict=True))


def _hashes(pairs: Iterable[str]) -> set[str]:
    return {each for pair in pairs for each in pair.split(" ") if len(each) > 1}


def _is_sound(content: Any) -> bool:
    """Whether a record has what it is asked for, and names nothing but outputs; people edit files."""
    if not isinstance(content, dict) or set(content) != {"settings", "outputs", "arrows", "pairs"}:
        return False
    outputs, pairs = content["outputs"], content["pairs"]
    if not isinstance(content["settings"], dict) or not isinstance(pairs, dict):
        return False
    possible = {f"{kind}/*{ending}" for kind in KINDS for ending in ENDINGS.values()} | {CLIPS}
    return (
        content["arrows"] in (None, True, False)
        and isinstance(outputs, list)
        and all(isinstance(each, str) and each in possible for each in outputs)
        and all(isinstance(value, str) for value in pairs.values())
    )

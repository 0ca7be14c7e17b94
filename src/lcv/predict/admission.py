"""Whether an input is the one that a record tells of, and may go on with what is there.

Inputs are told apart by their content, since folders are moved and copied. Some of it may change: what
depends on it is then removed and made again. To take another input of the same name for this one would
cost all that was made of that, so where most has changed we ask.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import FileError
from lcv.predict.claims import Claim
from lcv.predict.manifest import OR_ANEW
from lcv.predict.outputs import CLIPS, check_apart
from lcv.predict.record_file import Known
from lcv.predict.sources import (
    ENDLESS,
    EVERY_PAIR,
    UNKNOWN,
    FrameFiles,
    Sequence,
    fingerprint,
    inputs_of,
)

if TYPE_CHECKING:
    from lcv.predict.records import Record


def newer(known: str | None, now: str) -> str:
    """The hashes of a pair's frames as they are now; as they were, of those that cannot be read."""
    if known is None:
        return now
    before, after = known.split(" "), now.split(" ")
    if len(before) != len(after):
        return now
    return " ".join(b if a == UNKNOWN else a for a, b in zip(after, before, strict=True))


def is_as_recorded(record: Record, there: Known, claim: Claim) -> bool:
    """Whether a sequence is what it was, so that parts made before and now belong together.

    It may be longer than what is asked for now, and no shorter: a scale is that of the whole.
    """
    if claim.is_numbered:
        known = there.pairs.get(EVERY_PAIR)
        return (
            known == record.pairs[EVERY_PAIR]
            and known != UNKNOWN
            and there.numbers >= claim.count(there.frames)
        )
    return all(
        name in there.pairs and newer(there.pairs[name], record.pairs[name]) == there.pairs[name]
        for name in claim.names
    ) and (record.is_nameless or there.names <= {*claim.all_names})


def check_no_input(record: Record) -> None:
    """Refuse to write to, or to remove, what is an input."""
    there = record.file.read(lenient=True)
    told = set() if there is None or record.is_nameless else there.names
    outputs = record.outputs | set(() if there is None else there.outputs)
    for claim in record.claims:
        sequence, files = claim.sequence, record.files
        numbers = range(ENDLESS if claim.is_numbered else 0)
        places = [
            *files.named(sequence, {*claim.all_names, *told}, outputs),
            *files.numbered(sequence, numbers, outputs),
            files.clip(sequence),
        ]
        check_apart(places, inputs_of(sequence))


def check_unmixed(record: Record, there: Known, claim: Claim) -> None:
    """Refuse a film in the place of another, or of a stream; and frames that are paired otherwise."""
    if not claim.is_numbered:
        _check_pairing(record, there, claim)
        return
    sequence = claim.sequence
    if sequence.is_live:
        files = record.files.numbered(sequence, range(there.numbers), there.outputs)
        if files or there.pairs != record.pairs:
            raise FileError(
                f"{record.root}: already has outputs of {record.file.called}, which cannot be seen "
                f"a second time to go on with them; choose another folder or say --overwrite"
            )
        return
    known = there.pairs.get(EVERY_PAIR)
    if known in (None, UNKNOWN) or known != record.pairs[EVERY_PAIR]:
        raise _another(record)


def check_same_input(record: Record, there: Known) -> None:
    """Refuse frames of which less than half, or no two neighbours, are those that were there."""
    now = {name: value for name, value in record.pairs.items() if name != EVERY_PAIR}
    if not now:
        return
    known = there.pairs if not record.is_nameless else {n: there.pairs.get(n) for n in now}
    common = [
        (tuple(before.split(" ")[-2:]), tuple(now[name].split(" ")[-2:]))
        for name, before in known.items()
        if before is not None and name in now
    ]
    seen = [each for each in common if UNKNOWN not in (*each[0], *each[1])]
    if common:
        if all(before == after for before, after in seen):
            return
        same = sum(b == a for pair in seen for b, a in zip(*pair, strict=True))
        # A pair by itself has no neighbours: one of its two frames is what is left of it.
        if same and len(now) == len(known) == 1:
            return
        # Two frames alike, as in a fade from black, are no sign of anything.
        if same >= len(seen) and any(b == a and b[0] != b[1] for b, a in seen):
            return
    elif record.is_nameless:
        return
    else:
        before = {tuple(value.split(" ")[-2:]) for value in there.pairs.values()}
        after = {tuple(value.split(" ")[-2:]) for value in now.values()}
        if any(len(pair) == 2 and pair[0] != pair[1] for pair in before & after):
            return
    raise _another(record)


def strange(record: Record, there: Known | None) -> Path | None:
    """A file in the place of an output that this job has not made, by all that is told."""
    told = set() if there is None else there.names
    added = record.outputs - set(() if there is None else there.outputs)
    numbers = 0 if there is None else there.numbers
    for claim in record.claims:
        sequence, found = claim.sequence, list[Path]()
        for output in sorted(record.outputs - {CLIPS}):
            names: Iterable[str] = claim.names
            pending = record.pending.get(output, set())
            if output not in added:
                names = [name for name in claim.names if name not in told or name in pending]
            found += record.files.named(sequence, names, [output])
            if claim.is_numbered:
                asked = claim.count(None if there is None else there.frames)
                # Nobody knows which numbers a stream will come to.
                stop = ENDLESS if claim.pairs is None else asked
                first = 0 if output in added else numbers
                places = record.files.numbered(sequence, range(stop), [output])
                found += [p for p in places if int(p.stem) >= first or p.stem in pending]
        if CLIPS in record.outputs and not record.owns_clip(sequence):
            clip = record.files.clip(sequence)
            found += [clip] if os.path.lexists(clip) else []
        if found:
            return found[0]
    return None


def check_free(record: Record, sequence: Sequence, pair: int) -> None:
    """A film that is longer than it says, or a stream, comes to a number: is it taken?"""
    if record.tells_of(sequence, pair):
        return
    taken = record.files.numbered(sequence, range(pair, pair + 1), record.outputs)
    if taken and not record.may_replace:
        raise not_ours(record, taken[0])
    record.files.remove(taken)


def not_ours(record: Record, path: Path) -> FileError:
    """What to say of a file in the place of an output."""
    return FileError(
        f"{path}: exists already, but {record.file.path} does not say that this job made it. {OR_ANEW}"
    )


def _check_pairing(record: Record, there: Known, claim: Claim) -> None:
    """Refuse to pair a frame with another than before, where the one of before is as it was."""
    sequence = claim.sequence
    assert isinstance(sequence, FrameFiles)
    given: set[str] | None = None
    for number, name in enumerate(claim.names):
        before, second = there.pairs.get(name), there.seconds.get(name)
        if before is None or second is None or second == record.seconds[name]:
            continue
        first, old = before.split(" ")[-2:]
        path = Path(os.path.abspath(sequence.files[number].parent / second))
        given = given or {os.path.abspath(file) for file in sequence.files}
        if (
            first == record.pairs[name].split(" ")[-2]
            # Where it is still one of the frames, another was put in between.
            and str(path) not in given
            and fingerprint(path) == old != UNKNOWN
        ):
            raise FileError(
                f"{record.root}: its pair {name!r} is {sequence.files[number].name} with "
                f"{second}, which is there as it was, and here it is to be with "
                f"{record.seconds[name]}. {OR_ANEW}"
            )


def _another(record: Record) -> FileError:
    return FileError(
        f"{record.root}: already has outputs of another input that is called "
        f"{record.file.called}, or most of this one has changed since. {OR_ANEW}"
    )

"""What a record tells of and nobody has made: added to when it tells of more, settled at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from lcv.predict.claims import Claim, clip_name
from lcv.predict.journal import Log, failed, made, without
from lcv.predict.outputs import CLIPS
from lcv.predict.record_file import Known
from lcv.predict.sources import Sequence, any_possible, number_name

if TYPE_CHECKING:
    from lcv.predict.records import Record


def tells_of_clip(known: Known | None, sequence: Sequence) -> bool:
    """Whether a record tells of a sequence's film, made or not."""
    if known is None or CLIPS not in known.outputs:
        return False
    return bool(sequence.name) or sequence.pair_name(0) in known.pairs


def add_unmade(claims: Iterable[Claim], there: Known | None, mine: Known) -> None:
    """Note all that a record tells of from now on and did not before. there: what it said until now"""
    before = Known({}) if there is None else there
    for output in mine.outputs:
        names = {*mine.unmade.get(output, ())}
        for claim in claims:
            told = claim.names_of(mine)
            if output == CLIPS:
                is_told = tells_of_clip(there, claim.sequence)
                names |= set() if is_told else {clip_name(claim.sequence)}
            elif output not in before.outputs:
                names |= {*told} | {*map(number_name, range(before.numbers))} | before.names
            elif claim.is_numbered:
                names |= {*told[before.numbers :]}
            else:
                names |= {name for name in told if name not in before.pairs}
        if names:
            mine.unmade[output] = sorted(names)


def note_unmade(known: Known, names: Collection[str], outputs: Iterable[str]) -> None:
    """Nobody has made these outputs of pairs."""
    for output in outputs if names else ():
        known.unmade[output] = sorted({*names, *known.unmade.get(output, ())})


def unmake(
    record: Record, known: Known, claim: Claim, names: Collection[str], outputs: Iterable[str]
) -> set[str]:
    """Remove outputs of pairs, and the film that shows them: from now on nobody has made them.

    The logs say so at once, `known` when it is written. Returns the names of which any was there.
    What nobody had made before stays where it is, unless all is begun anew.
    """
    clip, files, found = clip_name(claim.sequence), record.files, set[str]()
    for output in outputs:
        gone = {clip} if output == CLIPS else {*names}
        if not record.may_replace:
            gone -= record.pending.get(output, set())
        if output != CLIPS:
            of = ((name, files.named(claim.sequence, [name], [output])) for name in gone)
            found |= {name for name, paths in of if files.remove(paths)}
        elif gone:
            files.remove_clip(claim.sequence, [CLIPS])
        note_unmade(known, gone, [output])
        record.journal.withdraw(gone, [output])
    known.clips.pop(clip, None)
    return found


def count_up(known: Known, numbers: int) -> None:
    """A film or stream has come to a number: those before it that were passed over are not made."""
    passed = {*map(number_name, range(known.numbers, numbers))}
    note_unmade(known, passed, {*known.outputs} - {CLIPS})
    known.numbers = max(known.numbers, numbers)


def end_at(known: Known, numbers: int) -> None:
    """A film has been read to its end: what was not made of it beyond never will be."""
    count_up(known, numbers)
    beyond = {*map(number_name, range(numbers, known.numbers))}
    known.unmade = without(known.unmade, {o: beyond for o in known.outputs if o != CLIPS})
    known.numbers = numbers


def conclude(record: Record) -> None:
    """A run has come to its end: what was made goes into the record, once all shards have.

    Until then the logs stay, so that folders of shards can be brought together by copying.
    """
    if not record.journal.logs():
        return
    with record.file.alone():
        there = record.read()
        told = record.with_mine(None) if there is None else there
        if not record.journal.is_alone:
            _give_up(record, told)
        logs = record.journal.logs()
        if not record.journal.is_alone and not _is_complete(record, told, logs):
            return
        unmade = without(told.unmade, made(logs))
        if there is not None and unmade != there.unmade:
            record.file.write(replace(there, unmade=unmade))
        names = {name for claim in record.claims for name in claim.names_of(told)}
        names |= {clip_name(claim.sequence) for claim in record.claims}
        record.journal.drop(names, with_empty=not record.is_nameless)


def _give_up(record: Record, told: Known) -> None:
    """Tell the other shards that what this one has not made cannot be."""
    pending = without(told.unmade, made(record.journal.logs()))
    wanted = {each: {*pending[each]} for each in record.outputs - {CLIPS} if each in pending}
    for claim in record.claims:
        for name in (*claim.own_names, *map(number_name, claim.own_numbers)):
            outputs = [each for each, names in wanted.items() if name in names]
            if outputs:
                record.journal.tell("-", name, outputs)


def _is_complete(record: Record, told: Known, logs: list[Log]) -> bool:
    """Whether nothing is left that any shard could make."""
    left = without(without(told.unmade, made(logs)), failed(logs))
    unmade = {name for output in record.outputs - {CLIPS} for name in left.get(output, ())}
    for claim in record.claims:
        names = claim.names_of(told)[: claim.limit]
        # A shard that finds nothing that it could make has no log to say so in.
        if any_possible(claim.sequence, {n for n, name in enumerate(names) if name in unmade}):
            return False
    return True

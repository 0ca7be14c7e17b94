"""What a record tells of and nobody has made: added to when it tells of more, settled at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from lcv.predict.claims import Claim, clip_name
from lcv.predict.journal import ANEW, Log, failed, made, without
from lcv.predict.outputs import CLIPS
from lcv.predict.record_file import Known
from lcv.predict.sources import Sequence, any_possible

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
                names |= {*told}
            elif claim.is_numbered:
                names |= {*told[before.numbers :]}
            else:
                names |= {name for name in told if name not in before.pairs}
        if names:
            mine.unmade[output] = sorted(names)


def count_up(known: Known, numbers: int) -> None:
    """A film or stream has come to a number: those before it that were passed over are not made."""
    passed = {f"{number:06d}" for number in range(known.numbers, numbers)}
    for output in {*known.outputs} - {CLIPS} if passed else ():
        known.unmade[output] = sorted(passed.union(known.unmade.get(output, ())))
    known.numbers = max(known.numbers, numbers)


def end_at(known: Known, numbers: int) -> None:
    """A film has been read to its end: what was not made of it beyond never will be."""
    count_up(known, numbers)
    beyond = {f"{number:06d}" for number in range(numbers, known.numbers)}
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
            record.journal.end()
        logs = record.journal.logs()
        if not record.journal.is_alone and not _is_complete(record, told, logs):
            return
        unmade = without(told.unmade, made(logs))
        if there is not None and unmade != there.unmade:
            record.file.write(replace(there, unmade=unmade))
        names = {name for claim in record.claims for name in claim.names_of(told)}
        record.journal.drop(names | {clip_name(claim.sequence) for claim in record.claims})


def _give_up(record: Record, told: Known) -> None:
    """Tell the other shards that what this one has not made cannot be."""
    pending = without(told.unmade, made(record.journal.logs()))
    wanted = {each: {*pending[each]} for each in record.outputs - {CLIPS} if each in pending}
    for claim in record.claims:
        for name in (*claim.own_names, *(f"{number:06d}" for number in claim.own_numbers)):
            outputs = [each for each, names in wanted.items() if name in names]
            if outputs:
                record.journal.tell("-", name, outputs)


def _is_complete(record: Record, told: Known, logs: list[Log]) -> bool:
    """Whether nothing is left that any shard could make."""
    if not record.journal.is_ended():
        return False
    left = without(without(told.unmade, made(logs)), failed(logs))
    unmade = {name for output in record.outputs - {CLIPS} for name in left.get(output, ())}
    is_anew = any(log.begun == ANEW for log in record.journal.of_command())
    for claim in record.claims:
        names = claim.names_of(told)[: claim.limit]
        missing = {number for number, name in enumerate(names) if name in unmade}
        # A shard that found nothing that it could make has said so only where all is begun anew.
        is_said = is_anew or claim.is_numbered
        if missing and (is_said or any_possible(claim.sequence, missing)):
            return False
    return True

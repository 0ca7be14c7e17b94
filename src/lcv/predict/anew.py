"""Beginning anew: what was made of the sequences of a record goes, and nothing else does.

The end is that of a run in an empty folder. Shards begin one after another, at any time: the first
removes everything, whoever made it; the others find its log, and remove no more than their own
parts, which may be there because they were killed and started again. So does the first, too, where
what is there is what the same command has made of the same frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING

from lcv.predict import warm
from lcv.predict.admission import is_as_recorded
from lcv.predict.claims import Claim, clip_name
from lcv.predict.journal import ANEW
from lcv.predict.outputs import CLIPS
from lcv.predict.record_file import Known
from lcv.predict.settings import difference

if TYPE_CHECKING:
    from lcv.predict.records import Record

# What a scale decides.
DRAWN = frozenset(("picture", "backward_picture", CLIPS))


def begin_anew(record: Record, is_shared: bool) -> None:
    """Remove what was made of the sequences, by whichever settings, of whatever kind.

    is_shared: other processes make other parts of them; what those have made since they began with
    the same command stays. Sequences of which this process has no part are theirs to begin with,
    but for what was made with other settings.
    """
    record.may_replace = True
    with record.file.alone():
        there = record.file.read(lenient=True)
        is_other = there is not None and difference(there.settings, record.settings) is not None
        is_mine = any(claim.is_any for claim in record.claims)
        if not is_mine and not is_other:
            return
        goes_on = is_shared and not is_other and _goes_on(record, there)
        left = deepcopy(there)
        for claim in record.claims:
            if claim.is_any or not goes_on:
                _remove_claimed(record, claim, left, goes_on)
        if not goes_on:
            clips = {clip_name(claim.sequence) for claim in record.claims}
            names = clips.union(*(claim.all_names for claim in record.claims))
            record.journal.drop(names if record.is_nameless else None)
            if left is not None:
                _prune(record, left)
        if left is None or is_other or not left.pairs:
            # Of other settings, what is not in this command is no one's now.
            record.file.remove()
        elif left != there:
            record.file.write(left)
        if is_shared and is_mine:
            record.journal.begin(ANEW)


def drop_other(record: Record) -> None:
    """Remove what was made with other settings, of sequences that other processes are to make."""
    there = record.file.read(lenient=True)
    if there is not None and difference(there.settings, record.settings) is not None:
        begin_anew(record, is_shared=True)


def _goes_on(record: Record, there: Known | None) -> bool:
    """Whether what the other shards have made is what this command makes of these inputs: they have
    begun anew with it, or all have ended, and nothing was there or has been added since.
    """
    is_begun = record.journal.goes_on()
    if there is None:
        return is_begun
    if not all(is_as_recorded(record, there, claim) for claim in record.claims):
        return False
    return is_begun or _is_all_of(record, there)


def _is_all_of(record: Record, there: Known) -> bool:
    """Whether a record tells of what this command makes, and of nothing else."""
    claim, name = record.claims[0], clip_name(record.claims[0].sequence)
    is_longer = claim.limit is not None and len(claim.names) > claim.limit
    if record.is_nameless or is_longer or there.settings != record.settings:
        return False
    told = there.numbers if claim.is_numbered else len(there.names)
    scales = {name: record.sample(claim.sequence, there)} if there.scales else {}
    return (
        there.outputs == sorted(record.outputs)
        and told == len(claim.names_of(there)[: claim.limit])
        and there.sampled == scales
    )


def _remove_claimed(record: Record, claim: Claim, left: Known | None, goes_on: bool) -> None:
    _remove(record, claim, claim.own_names, claim.own_numbers, record.outputs)
    if left is not None and goes_on:
        numbers = range(left.numbers)[claim.first : claim.stop]
        _remove(record, claim, claim.own_names, numbers, left.outputs)
    elif left is not None:
        told = claim.all_names if record.is_nameless else left.names
        _remove(record, claim, told, range(left.numbers), left.outputs)
        left.forget(told, clip_name(claim.sequence))
    if left is not None:
        left.clips.pop(clip_name(claim.sequence), None)
    outputs = {*record.outputs, *([] if left is None else left.outputs)}
    # A folder that is empty now may be the one that another process is about to write to.
    kinds = {each.partition("/")[0] for each in record.outputs}
    unused = [each for each in outputs if each.partition("/")[0] not in kinds]
    record.files.remove_empty(claim.sequence, unused)


def _remove(
    record: Record, claim: Claim, names: Iterable[str], numbers: range, outputs: Iterable[str]
) -> None:
    record.files.remove(record.files.named(claim.sequence, names, outputs))
    record.files.remove(record.files.numbered(claim.sequence, numbers, outputs))
    record.files.remove_clip(claim.sequence, outputs)
    warm.remove(warm.state_path(record.root, clip_name(claim.sequence)))


def _prune(record: Record, left: Known) -> None:
    """Of pairs that stay, forget kinds of which nothing is there, and their scale with them.

    Logs are of runs that are at work, or will be taken up again, and may be about to make some.
    """
    if record.journal.logs():
        return
    sequence = record.claims[0].sequence
    left.outputs = [
        output
        for output in left.outputs
        if (output == CLIPS and left.clips) or record.files.named(sequence, left.names, [output])
    ]
    left.unmade = {output: names for output, names in left.unmade.items() if output in left.outputs}
    if DRAWN.isdisjoint(output.partition("/")[0] for output in left.outputs):
        left.settings = {**left.settings, "scale": None}
        left.scales = {}

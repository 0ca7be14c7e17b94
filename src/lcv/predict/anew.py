"""Beginning anew: what was made of the sequences of a record goes, and nothing else does.

The end is that of a run in an empty folder. Shards begin one after another, at any time. Where what is
there is what their own command makes of the same frames, as far as it has come, each removes no more
than its own part; whichever finds anything else removes everything, whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING

from lcv.predict import warm
from lcv.predict.admission import is_as_recorded
from lcv.predict.claims import Claim, clip_name
from lcv.predict.journal import Names, made, without
from lcv.predict.outputs import CLIPS, sweep
from lcv.predict.record_file import Known
from lcv.predict.settings import difference
from lcv.predict.sources import number_name
from lcv.predict.unmade import unmake

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
            if record.is_nameless and not is_other:
                clips = {clip_name(claim.sequence) for claim in record.claims}
                names = clips.union(*(claim.all_names for claim in record.claims))
                record.journal.drop(names, with_empty=False)
            else:
                record.journal.drop_all()
            if left is not None:
                _prune(record, left)
        if left is None or is_other or not left.pairs:
            # Of other settings, what is not in this command is no one's now.
            record.file.remove()
        elif left != there:
            record.file.write(left)
        if is_shared and is_mine:
            record.journal.begin()


def drop_other(record: Record) -> None:
    """Remove what was made with other settings, of sequences that other processes are to make."""
    there = record.file.read(lenient=True)
    if there is not None and difference(there.settings, record.settings) is not None:
        begin_anew(record, is_shared=True)


def _goes_on(record: Record, there: Known | None) -> bool:
    """Whether what is there is what this command makes of these inputs, as far as it has come."""
    names = {name for claim in record.claims for name in claim.all_names}
    for log in record.journal.others():
        # Of pairs without a name, others' are of no concern.
        if not record.is_nameless or log.command == record.journal.command or log.pairs & names:
            return False
    if there is None:
        return True
    if record.is_nameless:
        if not record.outputs <= {*there.outputs}:
            return False
    elif there.outputs != sorted(record.outputs) or there.settings != record.settings:
        return False
    left = without(there.unmade, made(record.journal.logs()))
    pending = {output: {*names} for output, names in left.items()}
    return all(_is_made_so(record, there, claim, pending) for claim in record.claims)


def _is_made_so(record: Record, there: Known, claim: Claim, pending: Names) -> bool:
    """Whether of a sequence no other pairs and kinds were made, from no other frames, and its scale
    is that of these frames. pending: what nobody has begun to make
    """
    if not is_as_recorded(record, there, claim):
        return False
    told, clip = _told(record, there, claim), clip_name(claim.sequence)
    if not claim.is_numbered:
        is_longer = {*told} != {*claim.names}
    else:
        # A film may be longer than it says.
        most = there.numbers if claim.limit is None else claim.limit
        is_longer = there.numbers > max(most, claim.count(there.frames))
    if is_longer:
        return False
    beyond = [] if claim.limit is None else told[claim.limit :]
    for output in there.outputs:
        is_asked = output in record.outputs
        if output == CLIPS:
            others = set() if is_asked else {clip}
        else:
            others = {*(beyond if is_asked else told)}
        if not others <= pending.get(output, set()):
            return False
    if clip not in there.scales:
        return True
    is_found = record.settings["scale"] == "auto"
    return is_found and there.sampled.get(clip) == record.sample(claim.sequence, there)


def _told(record: Record, there: Known, claim: Claim) -> list[str]:
    """The names of all pairs of a sequence that a record tells of, in their order."""
    if claim.is_numbered:
        return [number_name(number) for number in range(there.numbers)]
    told = [name for name in claim.all_names if name in there.pairs]
    return told if record.is_nameless else [*told, *sorted(there.names - {*told})]


def _remove_claimed(record: Record, claim: Claim, left: Known | None, goes_on: bool) -> None:
    own = [*claim.own_names, *map(number_name, claim.own_numbers)]
    _remove(record, claim, own, record.outputs)
    if left is None:
        return
    if goes_on:
        if claim.is_numbered:
            own = _told(record, left, claim)[claim.first : claim.stop]
        unmake(record, left, claim, own, record.outputs)
        return
    # A film may be in the place of a folder of frames, and a folder in that of a film.
    all_ = [*left.names, *map(number_name, range(left.numbers))]
    told = claim.all_names if record.is_nameless else all_
    _remove(record, claim, told, left.outputs)
    # A folder that is empty now may be the one that another process is about to write to.
    kinds = {each.partition("/")[0] for each in record.outputs}
    unused = [each for each in left.outputs if each.partition("/")[0] not in kinds]
    record.files.remove_empty(claim.sequence, told, unused)
    left.forget(told, clip_name(claim.sequence))


def _remove(record: Record, claim: Claim, names: Iterable[str], outputs: Iterable[str]) -> None:
    """With what killed runs left half-written of them."""
    files, sequence = record.files, claim.sequence
    places = files.places(sequence, names, outputs)
    sweep(*places, *([files.clip(sequence)] if CLIPS in outputs else ()))
    files.remove(path for path in places if path.is_file() or path.is_symlink())
    files.remove_clip(sequence, outputs)
    warm.remove(warm.state_path(record.root, clip_name(sequence)))


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
        left.scales, left.sampled = {}, {}

"""The sequences that a run takes up, and their outputs in its folder: found, removed, counted."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import FileError
from lcv.predict.outputs import CLIPS, Folder, Output
from lcv.predict.sources import FrameFiles, Sequence, number_name

if TYPE_CHECKING:
    from lcv.predict.record_file import Known

NAMELESS = "."


@dataclass(frozen=True)
class Claim:
    """A sequence of which a process is to make pairs `first` … `stop` − 1; None: to its end.

    pairs: of the whole sequence, whoever makes them; None where nobody knows
    limit: at most so many pairs are asked for, whatever its length; None: all
    """

    sequence: Sequence
    pairs: int | None
    first: int = 0
    stop: int | None = None
    limit: int | None = None

    @property
    def is_numbered(self) -> bool:
        """Whether its pairs have numbers for names, and nobody knows for certain how many."""
        return not isinstance(self.sequence, FrameFiles)

    @property
    def is_any(self) -> bool:
        """Whether there is anything in it for this process to make."""
        return self.stop is None or self.first < self.stop

    @property
    def all_names(self) -> tuple[str, ...]:
        """Of all pairs of the sequence, asked for or not, where they have names."""
        return self.sequence.names if isinstance(self.sequence, FrameFiles) else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its pairs, where they have names."""
        return self.all_names[: self.pairs]

    def names_of(self, known: Known) -> tuple[str, ...]:
        """Of all its pairs, also where they have numbers, as far as is known."""
        if self.is_numbered:
            return tuple(map(number_name, range(self.count(known.frames))))
        return self.names

    @property
    def own_names(self) -> tuple[str, ...]:
        """Of the pairs that this process is to make, where they have names."""
        return self.names[self.first : self.stop]

    @property
    def own_numbers(self) -> range:
        """Of the pairs that this process is to make, where they have numbers, as far as is known."""
        if not self.is_numbered:
            return range(0)
        stop = self.pairs or 0
        return range(self.first, stop if self.stop is None else min(stop, self.stop))

    def count(self, frames: int | None) -> int:
        """Its pairs as far as is known. frames: where a film was read to its end, how many it has"""
        if frames is None:
            return self.pairs or 0
        return max(0, frames - 1) if self.limit is None else min(max(0, frames - 1), self.limit)


class ClaimedFiles:
    """Outputs by the words of a record: "flow/*.flo" for a kind and its ending, or "clip".

    removed: how many files were
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.removed = 0

    def path(self, sequence: Sequence, name: str, output: str) -> Path:
        """The output of a pair."""
        kind, _, ending = output.partition("/*")
        return Folder(self.root).place(kind, sequence.name, f"{name}{ending}")

    def clip(self, sequence: Sequence) -> Path:
        return Folder(self.root).clip(clip_name(sequence))

    def named(self, sequence: Sequence, names: Iterable[str], outputs: Iterable[str]) -> list[Path]:
        """The outputs of pairs that are there, by their names, none outside the folder."""
        places = self.places(sequence, names, outputs)
        return [path for path in places if path.is_file() or path.is_symlink()]

    def places(
        self, sequence: Sequence, names: Iterable[str], outputs: Iterable[str]
    ) -> list[Path]:
        """Where outputs of pairs are, or would be, none outside the folder."""
        sound = [n for n in names if ".." not in Path(n).parts and not Path(n).is_absolute()]
        return [self.path(sequence, n, o) for o in outputs if o != CLIPS for n in sound]

    def numbered(self, sequence: Sequence, numbers: range, outputs: Iterable[str]) -> list[Path]:
        """The outputs of pairs that are there, by their numbers."""
        found = []
        for output in outputs:
            if output == CLIPS or not numbers:
                continue
            like = self.path(sequence, "0", output)
            for path in sorted(like.parent.glob(f"*{like.suffix}")):
                number = int(path.stem) if path.stem.isdecimal() else -1
                if number in numbers and path.stem == number_name(number):
                    found.append(path)
        return found

    def left(self, claim: Claim, known: Known) -> dict[str, int]:
        """Pairs that a sequence does not have any more, and how many outputs of each are there."""
        sequence = claim.sequence
        counts = {
            name: len(self.named(sequence, [name], known.outputs))
            for name in sorted(known.names - {*claim.all_names})
        }
        return {f"{sequence.name}/{name}": count for name, count in counts.items() if count}

    def remove(self, paths: Iterable[Path]) -> int:
        """Remove files; returns how many there were."""
        return sum([self._remove(path) for path in paths])

    def remove_clip(self, sequence: Sequence, outputs: Iterable[str]) -> None:
        if CLIPS in outputs:
            self._remove(self.clip(sequence))

    def remove_empty(
        self, sequence: Sequence, names: Iterable[str], outputs: Iterable[str]
    ) -> None:
        """Folders of a sequence that hold nothing any more. names: of pairs that were there"""
        places = self.places(sequence, ["0", *names], outputs)
        places += [self.clip(sequence)] if CLIPS in outputs else []
        for folder in sorted({path.parent for path in places}):
            while folder != self.root:
                # What is not empty, or not there, stays as it is.
                with suppress(OSError):
                    folder.rmdir()
                folder = folder.parent

    def _remove(self, path: Path) -> bool:
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise FileError(f"{path}: cannot be removed: {error.strerror}") from None
        self.removed += 1
        return True


def key_of(sequence: Sequence) -> str:
    """What a sequence is called in the job's files; those without a name share one entry."""
    return sequence.name or NAMELESS


def clip_name(sequence: Sequence) -> str:
    """What the film of a sequence is called."""
    return sequence.name or sequence.pair_name(0)


def as_text(output: Output) -> str:
    """An output in the words of a record."""
    return f"{output.kind}/*{output.ending}"

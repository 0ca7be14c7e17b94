"""The sequences that a run takes up, and their outputs in its folder: found, removed, counted."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lcv.errors import FileError
from lcv.predict.outputs import CLIPS, Folder, Output
from lcv.predict.sources import FrameFiles, Sequence

NAMELESS = "."


@dataclass(frozen=True)
class Claim:
    """A sequence of which a process is to make pairs `first` … `stop` − 1; None: to its end.

    pairs: of the whole sequence, whoever makes them; None where nobody knows
    """

    sequence: Sequence
    pairs: int | None
    first: int = 0
    stop: int | None = None

    def owns(self, pair: int) -> bool:
        """Whether a pair is this process's to make."""
        return self.first <= pair and (self.stop is None or pair < self.stop)

    @property
    def is_numbered(self) -> bool:
        """Whether its pairs have numbers for names, and nobody knows for certain how many."""
        return not isinstance(self.sequence, FrameFiles)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its pairs, where they have names."""
        return self.sequence.names[: self.pairs] if isinstance(self.sequence, FrameFiles) else ()


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
        return self.root / kind / sequence.name / f"{name}{ending}"

    def clip(self, sequence: Sequence) -> Path:
        return Folder(self.root).clip(clip_name(sequence))

    def numbered(self, claim: Claim, output: str) -> list[Path]:
        """All outputs of one kind and ending that have numbers, of the pairs that a claim owns."""
        if output == CLIPS:
            return []
        like = self.path(claim.sequence, "0", output)
        return [
            path
            for path in sorted(like.parent.glob(f"*{like.suffix}"))
            if path.stem.isdecimal() and len(path.stem) >= 6 and claim.owns(int(path.stem))
        ]

    def remove_pair(self, sequence: Sequence, name: str, outputs: Iterable[str]) -> int:
        """All outputs of a pair; returns how many there were."""
        if ".." in Path(name).parts or Path(name).is_absolute():
            return 0
        return sum(self._remove(self.path(sequence, name, o)) for o in outputs if o != CLIPS)

    def remove_numbered(self, claim: Claim, outputs: Iterable[str]) -> None:
        for output in outputs:
            for path in self.numbered(claim, output):
                self._remove(path)

    def remove_clip(self, sequence: Sequence, outputs: Iterable[str]) -> None:
        if CLIPS in outputs:
            self._remove(self.clip(sequence))

    def remove_empty(self, sequence: Sequence, outputs: Iterable[str]) -> None:
        """Folders of a sequence that hold nothing any more."""
        for output in outputs:
            folder = self.path(sequence, "0", output).parent
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

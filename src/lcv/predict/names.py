"""What inputs are called: short names, no two alike, under which their outputs lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import ArgumentError
from lcv.predict.sources import FrameFiles, Live

if TYPE_CHECKING:
    from lcv.predict.inputs import FilmFile


def apart(sequences: list[FrameFiles | Live]) -> list[FrameFiles | Live]:
    """The same, folders of one name told apart by the folder around them."""
    counts = Counter(each.name for each in sequences if each.name)
    return [
        FrameFiles(_with_parent(each.files[0].parent), each.files, each.names)
        if isinstance(each, FrameFiles) and counts[each.name] > 1
        else each
        for each in sequences
    ]


def _with_parent(folder: Path) -> str:
    folder = folder.resolve()
    return f"{folder.parent.name}/{folder.name}"


def short_names(films: list[Path]) -> list[str]:
    """Short names for films, no two alike: the stem, or with its ending, or with its folder."""
    ways: tuple[Callable[[Path], str], ...] = (
        lambda path: path.stem,
        lambda path: path.name,
        lambda path: f"{path.resolve().parent.name}/{path.stem}",
    )
    for way in ways:
        names = [way(path) for path in films]
        if len(set(names)) == len(names):
            return names
    return [f"{path.resolve().parent.name}/{path.name}" for path in films]


def check_names(sequences: Iterable[FrameFiles | Live | FilmFile]) -> None:
    """Refuse inputs whose outputs would have the same names."""
    taken: set[tuple[str, str]] = set()
    for sequence in sequences:
        files = isinstance(sequence, FrameFiles) and not sequence.name
        names = sequence.names if files else [""]  # type: ignore[union-attr]
        for name in names:
            if (sequence.name, name) in taken:
                raise ArgumentError(
                    f"two inputs have the name {sequence.name or name!r}, so their outputs would "
                    f"fall on each other; give them to two runs with folders of their own"
                )
            taken.add((sequence.name, name))

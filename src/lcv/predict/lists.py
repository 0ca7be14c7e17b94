"""Frames that are named one by one: in a list file, or as files in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from lcv.data.listfile import split_words
from lcv.errors import FileError
from lcv.predict.sources import FrameFiles


def read_list(path: Path) -> list[FrameFiles]:
    """A list file's pairs, those that share a frame with the line before chained; or its frames.

    image1 image2 [flow]      a pair a line; the flow, if any, is not looked at
    image                     a frame a line
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path}: not a text file, wanted lines of `image1 image2`") from None
    entries = [
        (number, words)
        for number, line in enumerate(lines, start=1)
        if (words := split_words(line, f"{path}:{number}"))
    ]
    if not entries:
        raise FileError(f"{path}: names no frames; wanted lines of `image1 image2`, or of `image`")
    for number, words in entries:
        if len(words) > 3 or (len(words) == 1) != (len(entries[0][1]) == 1):
            raise FileError(
                f"{path}:{number}: {len(words)} words, wanted `image1 image2` on every line, or one "
                f"image on every line; put a path with spaces into quotes"
            )
    if len(entries[0][1]) == 1:
        files = [path.parent / words[0] for _, words in entries]
        if len(files) < 2:
            raise FileError(f"{path}: names one frame only; flow needs at least two")
        return [frames_of(path.stem, files)]
    names = _line_names(entries)
    chains: list[tuple[list[Path], list[str]]] = []
    for name, (_, words) in zip(names, entries, strict=True):
        first, second = path.parent / words[0], path.parent / words[1]
        if chains and chains[-1][0][-1] == first:
            chains[-1][0].append(second)
            chains[-1][1].append(name)
        else:
            chains.append(([first, second], [name]))
    return [FrameFiles("", tuple(files), tuple(own)) for files, own in chains]


def _line_names(entries: list[tuple[int, list[str]]]) -> list[str]:
    """Each pair after its first frame; after its line too where that leads elsewhere or repeats."""
    plain = [Path(words[0]).with_suffix("") for _, words in entries]
    if len(set(plain)) == len(plain) and not any(p.is_absolute() or ".." in p.parts for p in plain):
        return [str(p) for p in plain]
    return [f"{number:06d}_{p.name}" for p, (number, _) in zip(plain, entries, strict=True)]


def frames_of(name: str, files: Sequence[Path]) -> FrameFiles:
    """Files in their order; a pair is named after its first frame."""
    stems = [path.stem for path in files[:-1]]
    unique = len(set(stems)) == len(stems)
    names = stems if unique else [path.name for path in files[:-1]]
    if len(set(names)) < len(names):
        names = [f"{index:06d}_{stem}" for index, stem in enumerate(stems)]
    return FrameFiles(name, tuple(files), tuple(names))


def long_names(sequence: FrameFiles) -> Iterator[str]:
    """What to say where frames differ in their endings alone: all pairs are then called otherwise
    than they would be without.
    """
    named = sequence.files[:-1]
    stem, count = Counter(path.stem for path in named).most_common(1)[0]
    if sequence.name and count > 1:
        one, two, *_ = (path.name for path in named if path.stem == stem)
        yield (
            f"{sequence.name}: {one} and {two} would have outputs of one name, so all its pairs are "
            f"called as in {sequence.names[0]}"
        )

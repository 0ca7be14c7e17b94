"""One's own data: a text file with `image1 image2 flow` on each line, relative to the file.

# a comment; the flow may be left out where there is no truth
a/0001.png a/0002.png a/0001.flo
"with space/1.png" 'with space/2.png' "with space/1.pfm"
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from lcv.data.dataset import Dataset, Holdout, Part, Survey, missing_files
from lcv.data.layouts import FLOW_SUFFIXES, IMAGE_SUFFIXES
from lcv.data.record import Record
from lcv.errors import FileError

LONGEST, MOST_LINES = 20_000, 5_000_000
"""The most characters in a line (three long paths fit) and the most lines in a list."""
_COMMENT = re.compile(r"\s*#")
_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s"']\S*))(?=\s|$)""")
_TRAIN = ("train", "training")
_VALIDATION = ("val", "valid", "validation", "test")


def listfile(path: str | os.PathLike[str], *, sparse: bool = False, strict: bool = True) -> Dataset:
    """The pairs that a list file names, in its order.

    sparse: the truths have holes (KITTI's PNG are taken as sparse without being told).
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path}: there is no such list file")
    records: list[Record] = []
    listed: dict[Path, set[str]] = {}
    for number, words in lines_of(path, "`image1 image2 flow`"):
        if len(words) not in (2, 3):
            raise FileError(
                f"{path}:{number}: {len(words)} word{'s' * (len(words) != 1)}, wanted "
                f"`image1 image2 flow`, or two images "
                f"where there is no truth; put a path with spaces into quotes"
            )
        files = [path.parent / word for word in words]
        flow = files[2] if len(files) == 3 else None
        record = Record(
            name=f"{path.stem}:{number}",
            image1=files[0],
            image2=files[1],
            flow=flow,
            dataset=path.stem,
            scene=str(Path(words[0]).parent),
            sparse=sparse or (flow is not None and flow.suffix.lower() == ".png"),
        )
        if strict and (lost := missing_files([record], listed)):
            file = lost[0][1]
            raise FileError(
                f"{path}:{number}: names {file}, which is missing from the folder {file.parent}"
            )
        records.append(record)
    if not records:
        raise FileError(f"{path}: names no pair; wanted lines of `image1 image2 flow`")
    return Dataset(path.stem, tuple(records))


def lines_of(path: Path, wanted: str) -> Iterator[tuple[int, list[str]]]:
    """Number and words of every line that has words, read as they are asked for."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(_lines(file), start=1):
                if number > MOST_LINES:
                    raise FileError(f"{path}: has more than {MOST_LINES:,} lines")
                if words := split_words(line, f"{path}:{number}"):
                    yield number, words
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a text file, wanted lines of {wanted}") from None


def _lines(file: IO[str]) -> Iterator[str]:
    """One line more than a list may have, and one character more in each, at most."""
    return islice(iter(lambda: file.readline(LONGEST + 1), ""), MOST_LINES + 1)


def split_words(line: str, where: str) -> list[str]:
    """The words of a line, quotes taken off; what follows a word that begins with # is a comment."""
    if len(line) > LONGEST:
        raise FileError(f"{where}: is longer than {LONGEST:,} characters; wanted a few paths")
    words, position = [], 0
    line = line.strip().removeprefix("\ufeff")
    while position < len(line):
        if _COMMENT.match(line, position):
            break
        match = _WORD.match(line, position)
        if match is None:
            raise FileError(f"{where}: a quotation mark is not closed, or closes inside a word")
        words.append(next(group for group in match.groups() if group is not None))
        position = match.end()
    return words


def is_list(path: Path) -> bool:
    """Whether the first line that says anything names two images and perhaps a flow."""
    if path.suffix.lower() not in (".txt", ".list", ".lst") or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in _lines(file):
            try:
                words = [Path(word).suffix.lower() for word in split_words(line, str(path))]
            except FileError:
                return False
            if words:
                images = len(words) in (2, 3) and set(words[:2]) <= IMAGE_SUFFIXES
                return images and set(words[2:]) <= FLOW_SUFFIXES
    return False


def list_files(path: Path) -> list[Path]:
    """The path itself if it is a list file, else the list files in the folder."""
    return [p for p in ([path] if path.is_file() else sorted(path.glob("*.*"))) if is_list(p)]


def is_home(path: Path) -> bool:
    """Whether this is a list file, or a folder with one."""
    return bool(list_files(path))


def survey(path: Path) -> Survey:
    """What `lcv data check` looks at: each list a part; train lists are held against the others."""
    parts = [Part(p.name, listfile(p, strict=False)) for p in list_files(path)]

    def side(part: Part, words: tuple[str, ...]) -> bool:
        return any(word in words for word in re.split(r"[^a-z]+", part.label.lower()))

    holdouts = [
        Holdout(f"{a.label} against {b.label}", a.dataset, b.dataset)
        for a in parts
        if side(a, _TRAIN)
        for b in parts
        if side(b, _VALIDATION)
    ]
    return Survey("list of pairs", path, tuple(parts), tuple(holdouts))

"""The files of `lcv view`: flows by name, folder or glob, what belongs to each, and where to write."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.errors import ArgumentError, FileError

if TYPE_CHECKING:
    import numpy as np

    from lcv.visual.figures import Known

PICTURES = (".png", ".jpg", ".jpeg", ".ppm")


def flow_files(words: list[str]) -> list[Path]:
    """The flow files that the words name, in their order; a folder gives its own in natural order.

    In a folder with flow of another kind, a .png is taken for a picture of it and left out. A folder
    that `lcv predict` has written gives the flows in its folder flow.
    """
    from lcv.data.layouts import FLOW_SUFFIXES

    return _files(words, "flow", FLOW_SUFFIXES, FLOW_SUFFIXES - {".png"})


def image_files(words: list[str]) -> list[Path]:
    """The same for frames."""
    from lcv.data.layouts import IMAGE_SUFFIXES

    return _files(words, "image", IMAGE_SUFFIXES, IMAGE_SUFFIXES)


def belonging(flows: list[Path], others: list[Path], option: str, spare: int = 0) -> list[Path]:
    """Which of the others belongs to which flow: the one of the same name, else of the same place.

    spare: how many may be left over; frames are one more than the flows between them
    """
    by_name = {path.stem: path for path in others}
    names = {flow.stem for flow in flows}
    if len(by_name) == len(others) and len(names) == len(flows) and names <= by_name.keys():
        return [by_name[flow.stem] for flow in flows]
    if not 0 <= len(others) - len(flows) <= spare:
        raise ArgumentError(
            f"{option}: {len(others)} files for {len(flows)} flows, and not the same names; "
            f"wanted one for each, in the same order or under the same names"
        )
    return others[: len(flows)]


def targets(flows: list[Path], output: str, overwrite: bool) -> list[Path]:
    """The picture of each flow: the output itself, or files in it if it is a folder.

    Refuses before the work what would be refused after it.
    """
    from lcv.files import check_output

    path = Path(output)
    folder = path.is_dir() or output.endswith(("/", "\\"))
    if len(flows) == 1 and not folder:
        if path.suffix.lower() not in PICTURES:
            raise ArgumentError(
                f"-o {output}: wanted a picture's name ({', '.join(PICTURES)}), or a folder, "
                f"written {output}/"
            )
        check_output(path, overwrite)
        return [path]
    if not folder and path.suffix.lower() in PICTURES:
        raise ArgumentError(
            f"-o {output}: is the name of one picture, but there are {len(flows)} flows; wanted "
            f"a folder"
        )
    seen: dict[Path, Path] = {}
    for flow in flows:
        target = path / f"{flow.stem}.png"
        if target in seen:
            other = seen[target]
            how = "one by one"
            if other.parent == flow.parent and other.suffix != flow.suffix:
                how = f"one kind at a time, as '{flow.parent / '*'}{other.suffix}'"
            raise ArgumentError(
                f"{other} and {flow} would both be drawn as {target}; draw them {how}"
            )
        seen[target] = flow
        if path.exists():
            check_output(target, overwrite)
    return list(seen)


def read_known(path: Path) -> Known:
    """A flow file and where it is known."""
    from lcv.data.formats.flow import read_flow
    from lcv.visual.figures import Known

    return Known(*read_flow(path))


def check_same_size(flow: Path, of_flow: Known, other: Path, found: np.ndarray) -> None:
    """Refuse a companion of another size than the flow, naming both files."""
    wanted, size = of_flow.flow.shape[:2], found.shape[:2]
    if wanted != size:
        raise FileError(
            f"{other}: is {size[1]}×{size[0]} pixels, but {flow} is {wanted[1]}×{wanted[0]}; "
            f"wanted the same size"
        )


def named_file(word: str, option: str) -> tuple[str, Path]:
    """NAME=PATH, or a path alone, whose stem is then the name."""
    name, equals, path = word.partition("=")
    # A file whose own name has an equals sign is a file first.
    if not equals or Path(word).exists():
        return Path(word).stem, Path(word)
    if not name or not path:
        raise ArgumentError(f"{option} {word}: wanted NAME=FILE")
    return name, Path(path)


def named_files(words: list[str], option: str) -> dict[str, Path]:
    """Several of them; names must differ, since they are printed."""
    named: dict[str, Path] = {}
    for word in words:
        name, path = named_file(word, option)
        if name in named:
            raise ArgumentError(
                f"{option}: {named[name]} and {path} are both called {name!r}; give names, as in "
                f"{option} NAME={path}"
            )
        named[name] = path
    return named


def _files(
    words: list[str], what: str, suffixes: frozenset[str], first: frozenset[str]
) -> list[Path]:
    from lcv.data.layouts import files_in, natural, subfolders

    found: list[Path] = []
    for word in words:
        path = Path(word)
        if path.is_dir():
            inside = files_in(path, first)
            if not inside and what == "flow" and (path / "flow").is_dir():  # what lcv predict left
                folders = (path / "flow", *subfolders(path / "flow"))
                inside = [file for folder in folders for file in files_in(folder, first)]
            inside = inside or files_in(path, suffixes)
            if not inside:
                raise FileError(
                    f"{path}: no {what} files in this folder, wanted {', '.join(sorted(suffixes))}"
                )
            found += inside
        elif not path.exists() and glob.has_magic(word):
            matched = sorted(map(Path, glob.glob(word)), key=natural)
            if not matched:
                raise FileError(
                    f"{word}: no file matches this pattern, wanted {what} files; mind the folder "
                    f"and the ending"
                )
            found += matched
        elif not path.exists():
            raise FileError(
                f"{path}: there is no such file, wanted a file of kind {what}, a folder of them, "
                f"or a pattern in quotes"
            )
        else:
            found.append(path)
    return found

"""The words of a command line as sequences of frames: pairs, folders, globs, lists, films, cameras."""

from __future__ import annotations

import glob
import re
import stat
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import NamedTuple

from lcv.data.frames import has_pairs, pairs
from lcv.data.layouts import IMAGE_SUFFIXES, VIDEO_SUFFIXES, files_in, natural, subfolders
from lcv.errors import ArgumentError, FileError
from lcv.predict import sources
from lcv.predict.decoder import Source
from lcv.predict.lists import frames_of, long_names, read_list
from lcv.predict.names import apart, check_names, short_names
from lcv.predict.sources import Film, FrameFiles, Live

FILMS = VIDEO_SUFFIXES | {".gif", ".y4m", ".ts", ".m2ts", ".flv", ".ogv", ".wmv", ".asf", ".3gp"}
LISTS = frozenset((".txt", ".lst", ".list"))
TIFFS = frozenset((".tif", ".tiff"))
WANTED = (
    "wanted two images, a folder of frames, a glob in quotes, a list file, a video, camera:0, or - "
    "for a stream on the standard input"
)
_CAMERA = re.compile(r"camera:(\d{1,3})")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Inputs(NamedTuple):
    """What there is to do.

    sequences: each read in order; a `FilmFile` is yet to be opened
    notes:     what was decided on the way and should be said
    """

    sequences: tuple[FrameFiles | Live | FilmFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_one_pair(self) -> bool:
        """Whether all there is to do is one pair of images, whose flow may go to a named file."""
        return len(self.sequences) == 1 and self.sequences[0].length == 2


class FilmFile(NamedTuple):
    """A video by name, not opened yet: a damaged one must not stop the others."""

    name: str
    path: Path
    length: None = None

    def open(self) -> Film:
        return sources.film(self.path, self.name)


class _Found(NamedTuple):
    """What one word means: images one by one, or whole sequences."""

    images: tuple[Path, ...] = ()
    sequences: tuple[FrameFiles | Live, ...] = ()
    films: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def find_inputs(words: Sequence[str]) -> Inputs:
    """Every input that the words name, refused at once where one is missing or means nothing.

    Two images are a pair, in the order given; more are a sequence in natural order, one for each
    folder that they come from.
    """
    if not words:
        raise ArgumentError(f"there is no input; {WANTED}")
    found = [_find(word) for word in words]
    images = [path for each in found for path in each.images]
    rest = [each for each in found if not each.images]
    if images and rest:
        other = next(w for w, each in zip(words, found, strict=True) if not each.images)
        raise ArgumentError(
            f"{images[0]} is an image and {other} is not; give images alone, or what holds frames "
            f"alone"
        )
    sequences: list[FrameFiles | Live] = [s for each in rest for s in each.sequences]
    if len(images) == 2 and len(words) == 2:
        sequences = [FrameFiles("", tuple(images), (images[0].stem,))]
    elif len(images) == 1:
        raise ArgumentError(
            f"{images[0]}: is one image only; flow needs two, so name a second one, or a folder"
        )
    elif images:
        sequences = [*_by_folder(images, " ".join(words))]
    films = [path for each in rest for path in each.films]
    named = zip(short_names(films), films, strict=True)
    everything = (*apart(sequences), *(FilmFile(name, path) for name, path in named))
    check_names(everything)
    notes = [note for each in found for note in each.notes]
    notes += [note for s in everything if isinstance(s, FrameFiles) for note in long_names(s)]
    return Inputs(everything, tuple(notes))


def _find(word: str) -> _Found:
    if not word.strip():
        raise ArgumentError(f"one of the inputs is {word!r}, an empty name; {WANTED}")
    if word == "-":
        return _Found(sequences=(Live("stdin", Source("pipe", "-")),))
    if word.startswith("camera:"):
        return _Found(sequences=(_camera(word),))
    if _ADDRESS.match(word):
        raise ArgumentError(
            f"{word}: addresses are not opened; fetch the file, or send the stream through a pipe: "
            f"ffmpeg -i {word} -f yuv4mpegpipe - | lcv predict - -o OUT"
        )
    path = Path(word)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return _glob(word)
    if stat.S_ISDIR(mode):
        return _folder(path)
    if stat.S_ISFIFO(mode):
        return _Found(sequences=(Live(path.stem, Source("pipe", word)),))
    return _file(path)


def _file(path: Path) -> _Found:
    suffix = path.suffix.lower()
    if suffix in FILMS:
        return _Found(films=(path,))
    if suffix in LISTS:
        return _Found(sequences=tuple(read_list(path)))
    # Images are known by their content, so that any other name may be one.
    return _Found(images=(path,))


def _glob(word: str) -> _Found:
    if not glob.has_magic(word):
        raise FileError(f"{word}: there is no such file or folder; {WANTED}")
    matches = [Path(match) for match in glob.glob(word, recursive=True)]
    if not matches:
        raise FileError(f"{word}: no file matches this pattern; {_instead(word)}")
    files = [path for path in matches if path.is_file() or _is_lost(path)]
    films = sorted((path for path in files if path.suffix.lower() in FILMS), key=_natural_path)
    images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
    if films and images:
        raise ArgumentError(
            f"{word}: matches images ({images[0].name}) and videos ({films[0].name}); make it "
            f"match one kind"
        )
    if films:
        return _Found(films=tuple(films))
    if images:
        return _Found(sequences=tuple(_by_folder(images, word)))
    folders = sorted((path for path in matches if path.is_dir()), key=_natural_path)
    if not folders:
        raise FileError(
            f"{word}: matches {len(files)} files, the first {files[0].name}, but no image, video "
            f"or folder"
        )
    found = [_folder(path) for path in folders]
    return _Found(
        sequences=tuple(sequence for each in found for sequence in each.sequences),
        films=tuple(film for each in found for film in each.films),
        notes=tuple(note for each in found for note in each.notes),
    )


def _instead(pattern: str) -> str:
    """What there is where a pattern looks, and what to do about it."""
    plain = [*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)]
    folder = Path(*plain)
    if not folder.is_dir():
        return f"there is no folder {folder}: mend its name, or go to the folder that it is in"
    where = "this folder" if folder == Path() else str(folder)
    try:
        inside = sorted(folder.iterdir(), key=natural)
    except OSError as error:
        return f"{where} cannot be read: {error.strerror}"
    if not inside:
        return f"{where} is empty"
    some = ", ".join(path.name + "/" * path.is_dir() for path in inside[:3])
    more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
    return f"{where} holds {some}{more}: mend the pattern, as in '{folder / '*.png'}'"


def _folder(path: Path) -> _Found:
    images, films = _images_in(path), files_in(path, FILMS)
    if images and films:
        raise ArgumentError(
            f"{path}: has images ({images[0].name}) and videos ({films[0].name}); choose one kind "
            f"with a glob in quotes, such as '{path}/*{images[0].suffix}'"
        )
    if films:
        return _Found(films=tuple(films))
    if len(images) > 2 and has_pairs(path):
        records = pairs(path).records
        singles = [
            FrameFiles("", (Path(str(r.image1)), Path(str(r.image2))), (r.name,)) for r in records
        ]
        note = (
            f"{path}: {len(singles)} pairs by the endings of their names, "
            f"{images[0].name} with {images[1].name} and so on"
        )
        left_out = [path.name for path in images if _is_lost(path)]
        notes = [f"{path}: left out, links to nothing: {', '.join(left_out)}"] if left_out else []
        return _Found(sequences=tuple(singles), notes=(note, *notes))
    if len(images) == 1:
        raise FileError(
            f"{path}: has one image only, {images[0].name}; flow needs at least two frames"
        )
    if images:
        return _Found(sequences=(frames_of(path.resolve().name, images),))
    inside = [(folder, _images_in(folder)) for folder in subfolders(path)]
    many = [frames_of(folder.name, files) for folder, files in inside if len(files) > 1]
    if not many:
        raise FileError(
            f"{path}: no frames in this folder, nor two in one inside it; wanted images "
            f"({', '.join(sorted(IMAGE_SUFFIXES))}) or videos"
            f"{_hint(path, (folder for folder, _ in inside))}"
        )
    lonely = [folder.name for folder, files in inside if len(files) == 1]
    notes = [f"{path}: left out, having one frame only: {', '.join(lonely)}"] if lonely else []
    return _Found(sequences=tuple(many), notes=tuple(notes))


def _camera(word: str) -> Live:
    match = _CAMERA.fullmatch(word)
    if match is None:
        raise ArgumentError(f"{word}: wanted camera:0, camera:1 and so on")
    device = Path(f"/dev/video{match[1]}")
    if not device.exists():
        there = sorted(path.name.removeprefix("video") for path in Path("/dev").glob("video*"))
        cameras = ", ".join(f"camera:{number}" for number in there) or "none"
        raise FileError(
            f"{word}: there is no {device}; cameras on this machine: {cameras}. (Cameras are read "
            f"through Linux's video4linux; elsewhere, pipe the stream to `lcv predict -`.)"
        )
    return Live(f"camera{match[1]}", Source("camera", word))


def _by_folder(images: Iterable[Path], what: str) -> list[FrameFiles]:
    ordered = sorted(set(images), key=_natural_path)
    groups = [(folder, list(files)) for folder, files in groupby(ordered, lambda p: p.parent)]
    lonely = [files[0] for _, files in groups if len(files) == 1]
    if lonely:
        raise FileError(
            f"{what}: {lonely[0]} is the only image of its folder here; flow needs at least two "
            f"frames"
        )
    return [frames_of(folder.resolve().name, files) for folder, files in groups]


def _images_in(folder: Path) -> list[Path]:
    """The images in a folder in natural order; links that lead nowhere are frames that cannot be read."""
    lost = [
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES and path.name[0] != "." and _is_lost(path)
    ]
    return sorted([*files_in(folder, IMAGE_SUFFIXES), *lost], key=natural)


def _is_lost(path: Path) -> bool:
    """Whether this is a link to what is not there."""
    return path.is_symlink() and not path.exists()


def _hint(folder: Path, inside: Iterable[Path]) -> str:
    """What to do about frames of a kind that is not read."""
    found = [path for each in (folder, *inside) for path in files_in(each, TIFFS)]
    if not found:
        return ""
    return (
        f". {found[0].name} is a TIFF, which is not read here: convert it to PNG (16 bits stay 16 "
        f"bits there)"
    )


def _natural_path(path: Path) -> tuple[object, ...]:
    return tuple(natural(Path(part)) for part in path.parent.parts), natural(path)

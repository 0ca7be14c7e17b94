"""The words of a command line as sequences of frames: pairs, folders, globs, lists, videos, cameras."""

from __future__ import annotations

import glob
import re
import stat
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, cast

from lcv.data.formats.animation import is_animated
from lcv.data.formats.decoder import Source
from lcv.data.frames import has_pairs, pairs
from lcv.data.layouts import IMAGE_SUFFIXES, VIDEO_SUFFIXES, files_in, natural, subfolders
from lcv.data.listfile import lines_of
from lcv.errors import ArgumentError, FileError
from lcv.predict.sources import FrameFiles, Live, Sequence, Video
from lcv.words import counted

VIDEOS = VIDEO_SUFFIXES | {
    ".gif",
    ".apng",
    ".y4m",
    ".ts",
    ".m2ts",
    ".flv",
    ".ogv",
    ".wmv",
    ".asf",
    ".3gp",
}
LISTS = frozenset((".txt", ".lst", ".list"))
WANTED = (
    "wanted two images, a folder of frames, a glob in quotes, a list file, a video, camera:0, or - "
    "for a stream on the standard input"
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Inputs(NamedTuple):
    """What there is to do. notes: what was decided on the way and should be said"""

    sequences: tuple[Sequence, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_one_pair(self) -> bool:
        """Whether all there is to do is one pair of images, whose flow may go to a named file."""
        return len(self.sequences) == 1 and self.sequences[0].length == 2


class _Found(NamedTuple):
    """What one word means: images one by one, or whole sequences."""

    images: tuple[Path, ...] = ()
    sequences: tuple[Sequence, ...] = ()
    notes: tuple[str, ...] = ()


def find_inputs(words: list[str]) -> Inputs:
    """Every input that the words name, refused at once where one is missing or not understood.

    Two images are a pair, in the order given; more are a sequence in natural order, one for each
    folder that they come from. Videos are not opened yet: a damaged one must not stop the others.
    """
    if not words:
        raise ArgumentError(f"there is no input; {WANTED}")
    found = [_find(word) for word in words]
    images = [path for each in found for path in each.images]
    others = [word for word, each in zip(words, found, strict=True) if not each.images]
    if images and others:
        raise ArgumentError(
            f"{images[0]} is an image and {others[0]} is not; do not mix images with folders, videos "
            f"or lists"
        )
    sequences = [sequence for each in found for sequence in each.sequences]
    if len(images) == 2 and len(words) == 2:
        sequences = [FrameFiles("", tuple(images), (images[0].stem,))]
    elif len(images) == 1:
        raise ArgumentError(
            f"{images[0]}: is one image only; flow needs two, so name a second one, or a folder"
        )
    elif images:
        sequences = [*_by_folder(images, " ".join(words))]
    sequences = _told_apart(sequences)
    _check_names(sequences)
    return Inputs(tuple(sequences), tuple(note for each in found for note in each.notes))


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
    except PermissionError:  # `lcv` names the file
        raise
    except (OSError, ValueError):
        return _glob(word)
    if stat.S_ISDIR(mode):
        return _folder(path)
    if stat.S_ISFIFO(mode):
        return _Found(sequences=(Live(path.stem, Source("pipe", word)),))
    if path.suffix.lower() in VIDEOS or is_animated(path):
        return _Found(sequences=(Video(path.stem, path),))
    if path.suffix.lower() in LISTS:
        return _Found(sequences=tuple(_read_list(path)))
    return _Found(images=(path,))  # known by its content, whatever its name


def _glob(word: str) -> _Found:
    if not glob.has_magic(word):
        raise FileError(f"{word}: there is no such file or folder; {WANTED}")
    matches = sorted((Path(match) for match in glob.glob(word, recursive=True)), key=_natural_path)
    if not matches:
        raise FileError(f"{word}: no file matches this pattern; correct it, or name the folder")
    files = [path for path in matches if not path.is_dir()]
    videos = [path for path in files if path.suffix.lower() in VIDEOS]
    images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
    _check_one_kind(word, images, videos)
    if videos:
        return _Found(sequences=tuple(Video(path.stem, path) for path in videos))
    if images:
        return _Found(sequences=tuple(_by_folder(images, word)))
    folders = [_folder(path) for path in matches if path.is_dir()]
    if not folders:
        raise FileError(
            f"{word}: matches {counted(len(files), 'file')}, the first {files[0].name}, but no image, video "
            f"or folder"
        )
    return _Found(
        sequences=tuple(sequence for each in folders for sequence in each.sequences),
        notes=tuple(note for each in folders for note in each.notes),
    )


def _folder(path: Path) -> _Found:
    images, videos = _images_in(path), files_in(path, VIDEOS)
    _check_one_kind(path, images, videos)
    if videos:
        return _Found(sequences=tuple(Video(video.stem, video) for video in videos))
    if len(images) > 2 and has_pairs(path):
        singles = [
            FrameFiles("", (Path(str(r.image1)), Path(str(r.image2))), (r.name,))
            for r in pairs(path).records
        ]
        count = counted(len(singles), "pair")
        note = f"{path}: taken as {count} by the file names, not as a sequence"
        return _Found(sequences=tuple(singles), notes=(note,))
    if len(images) == 1:
        raise FileError(
            f"{path}: has one image only, {images[0].name}; flow needs at least two frames"
        )
    if images:
        return _Found(sequences=(_frame_files(path.resolve().name, images),))
    inside = [(folder, _images_in(folder)) for folder in subfolders(path)]
    many = [_frame_files(folder.name, files) for folder, files in inside if len(files) > 1]
    if not many:
        raise FileError(
            f"{path}: no frames in this folder, nor two in one inside it; wanted images "
            f"({', '.join(sorted(IMAGE_SUFFIXES))}) or videos"
        )
    lonely = [folder.name for folder, files in inside if len(files) == 1]
    notes = [f"{path}: left out, having one frame only: {', '.join(lonely)}"] if lonely else []
    return _Found(sequences=tuple(many), notes=tuple(notes))


def _check_one_kind(what: str | Path, images: list[Path], videos: list[Path]) -> None:
    if images and videos:
        raise ArgumentError(
            f"{what}: has images ({images[0].name}) and videos ({videos[0].name}); choose one kind "
            f"with a glob in quotes, such as '*{images[0].suffix}'"
        )


def _camera(word: str) -> Live:
    number = word.removeprefix("camera:")
    if not number.isdecimal():
        raise ArgumentError(f"{word}: wanted camera:0, camera:1 and so on")
    if not Path(f"/dev/video{number}").exists():
        there = sorted(path.name for path in Path("/dev").glob("video*"))
        raise FileError(
            f"{word}: there is no /dev/video{number}; found {', '.join(there) or 'no camera'}; "
            f"on other systems than Linux, pipe the stream to `lcv predict -`"
        )
    return Live(f"camera{number}", Source("camera", word))


def _read_list(path: Path) -> list[FrameFiles]:
    """A list file's pairs, those that share a frame with the line before chained; or its frames.

    image1 image2 [flow]      a pair a line; the flow, if any, is not looked at
    image                     a frame a line
    """
    entries: list[tuple[int, list[str]]] = []
    for number, words in lines_of(path, "`image1 image2`"):
        if len(words) > 3 or (entries and (len(words) == 1) != (len(entries[0][1]) == 1)):
            raise FileError(
                f"{path}:{number}: {len(words)} words, wanted `image1 image2` on every line, or one "
                f"image on every line; put a path with spaces into quotes"
            )
        for file in (path.parent / word for word in words[:2]):
            if not file.exists():
                raise FileError(f"{path}:{number}: names {file}, and there is no such file")
        entries.append((number, words))
    if not entries:
        raise FileError(f"{path}: names no frames; wanted lines of `image1 image2`, or of `image`")
    if len(entries[0][1]) == 1:
        if len(entries) < 2:
            raise FileError(f"{path}: names one frame only; flow needs at least two")
        return [_frame_files(path.stem, [path.parent / words[0] for _, words in entries])]
    # A pair is named after its first frame; after its line too where that leads elsewhere or repeats.
    firsts = [Path(words[0]).with_suffix("") for _, words in entries]
    names = [str(first) for first in firsts]
    if len({*names}) < len(names) or any({"/", ".."} & {*first.parts} for first in firsts):
        names = [f"{number:06d}_{Path(words[0]).stem}" for number, words in entries]
    chains: list[tuple[list[Path], list[str]]] = []
    for name, (_, words) in zip(names, entries, strict=True):
        first, second = path.parent / words[0], path.parent / words[1]
        if chains and chains[-1][0][-1] == first:
            chains[-1][0].append(second)
            chains[-1][1].append(name)
        else:
            chains.append(([first, second], [name]))
    return [FrameFiles("", tuple(files), tuple(own)) for files, own in chains]


def _frame_files(name: str, files: list[Path]) -> FrameFiles:
    """A pair is named after its first frame, with its ending or place if that tells too little."""
    firsts = files[:-1]
    numbered = [f"{index:06d}_{path.stem}" for index, path in enumerate(firsts)]
    ways = [path.stem for path in firsts], [path.name for path in firsts], numbered
    names = next(names for names in ways if len({*names}) == len(names))
    return FrameFiles(name, tuple(files), tuple(names))


def _by_folder(images: Iterable[Path], what: str) -> list[FrameFiles]:
    ordered = sorted({*images}, key=_natural_path)
    groups = [(folder, [*files]) for folder, files in groupby(ordered, lambda p: p.parent)]
    for _, files in groups:
        if len(files) == 1:
            raise FileError(
                f"{what}: {files[0]} is the only image of its folder here; flow needs at least two "
                f"frames"
            )
    return [_frame_files(folder.resolve().name, files) for folder, files in groups]


def _images_in(folder: Path) -> list[Path]:
    """The images in a folder in natural order; a link that leads nowhere is one that cannot be read."""
    paths = (p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES and p.name[0] != ".")
    return sorted((path for path in paths if not path.is_dir()), key=natural)


def _natural_path(path: Path) -> tuple[object, ...]:
    return tuple(natural(Path(part)) for part in path.parent.parts), natural(path)


def _told_apart(sequences: list[Sequence]) -> list[Sequence]:
    """The same sequences; where names repeat, with the folder's name too, and videos with their ending."""
    counts = Counter(sequence.name for sequence in sequences)
    apart = []
    for each in sequences:
        if isinstance(each, FrameFiles) and each.name and counts[each.name] > 1:
            folder = each.files[0].parent.resolve()
            each = FrameFiles(_with_folder(folder), each.files, each.names)
        elif isinstance(each, Video) and counts[each.name] > 1:
            each = Video(_with_folder(each.path.resolve()), each.path)
        apart.append(each)
    return apart


def _with_folder(path: Path) -> str:
    """A name preceded by its folder's, unless that is the root."""
    return str(Path(path.parent.name, path.name))


def _check_names(sequences: Iterable[Sequence]) -> None:
    """Refuse inputs whose outputs would have the same names, or lie outside the job's folders."""
    for each in sequences:
        if each.name in (".", ".."):
            what = each.files[0] if each.files else cast(Live, each).source.name
            raise ArgumentError(
                f"{what}: its outputs would lie in a folder called {each.name!r}; rename the input"
            )
    pairs = [name for each in sequences if not each.name for name in cast(FrameFiles, each).names]
    named = [each.name for each in sequences if each.name]
    # A pair called a/1 has its outputs in the folder of a sequence called a.
    folders = {str(Path(name).parent) for name in pairs}
    twice = [name for name, count in Counter(pairs + named).items() if count > 1]
    for name in [*twice, *(folders & {*named})]:
        raise ArgumentError(
            f"two inputs have the name {name!r}, so their outputs would overwrite each other; run "
            f"them separately, each with its own -o"
        )

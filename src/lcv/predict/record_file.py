"""One record on disk: all that is known of the outputs of a sequence, tied to what they are made from.

OUT/made/SEQUENCE.json, or OUT/made.json for all pairs of sequences that have no name:

    settings   those that decide numbers
    outputs    every kind and ending that was asked for, as in "flow/*.flo"
    unmade     by its kind and ending, of which pairs it has not been made (see `lcv.predict.journal`)
    pairs      of each pair the hashes of its frames' files; under "*" that of a film
    seconds    where the second frame of a pair lies, seen from the first
    numbers    of a film or stream: its outputs are called 000000 … numbers − 1
    frames     of a film, once it has been read to its end
    scales     of pictures that are drawn alike, by the name that a clip of them would have
    sampled    a hash of the frames that each of these scales was found in
    clips      by its name, a hash of all that a clip shows

Nothing in it depends on when or where a run was made: a run that was broken off and taken up again,
or shared among processes, ends with the same file as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lcv.errors import FileError
from lcv.files import only_one, whole_file
from lcv.predict.journal import without
from lcv.predict.manifest import OR_ANEW
from lcv.predict.outputs import CLIPS, ENDINGS, KINDS, make_folder, sweep
from lcv.predict.sources import EVERY_PAIR

POSSIBLE = frozenset(f"{kind}/*{ending}" for kind in KINDS for ending in ENDINGS.values()) | {CLIPS}


@dataclass
class Known:
    """What a record says; see the head of this module."""

    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, str] = field(default_factory=dict)
    numbers: int = 0
    frames: int | None = None
    scales: dict[str, float] = field(default_factory=dict)
    clips: dict[str, str] = field(default_factory=dict)
    unmade: dict[str, list[str]] = field(default_factory=dict)
    sampled: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Of all pairs that have names, and not numbers."""
        return {*self.pairs} - {EVERY_PAIR}

    def forget(self, names: Iterable[str], clip: str) -> None:
        """All that depends on what a sequence was made from. names: of its pairs; clip: its own"""
        gone = {*names}
        self.unmade = without(self.unmade, {output: {*gone, clip} for output in self.unmade})
        for name in (*gone, EVERY_PAIR):
            self.pairs.pop(name, None)
            self.seconds.pop(name, None)
        self.scales.pop(clip, None)
        self.sampled.pop(clip, None)
        self.clips.pop(clip, None)
        if self.numbers:
            self.numbers, self.frames, self.unmade = 0, None, {}


class RecordFile:
    """A record's file. known: what it said when it was last read or written"""

    def __init__(self, path: Path, called: str) -> None:
        self.path, self.called = path, called
        self.known: Known | None = None

    def read(self, lenient: bool = False) -> Known | None:
        """What is recorded. lenient: a damaged record is none"""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if isinstance(content, dict):
                # Of a record without: all was made, and nobody knows from what its scales are.
                content = {"unmade": {}, "sampled": {}, **content}
        except (FileNotFoundError, NotADirectoryError):
            self.known = None
            return None
        except (OSError, ValueError, RecursionError):
            content = None
        if not _is_sound(content) and not lenient:
            raise FileError(
                f"{self.path}: is damaged, so that nobody knows what the outputs of {self.called} "
                f"were made from. {OR_ANEW}"
            )
        self.known = Known(**content) if _is_sound(content) else None
        return self.known

    def write(self, known: Known) -> None:
        text = json.dumps(asdict(known), indent=1, sort_keys=True, ensure_ascii=False)
        with whole_file(self.path, overwrite=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        self.known = known

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.known = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While the block runs, no other process of the job touches the record or what it tells of."""
        make_folder(self.path.parent)
        with only_one(self.path):
            sweep(self.path)
            yield


def _is_sound(content: Any) -> bool:
    """Whether a record has what it is asked for, and names nothing but outputs; people edit files."""
    if not isinstance(content, dict) or set(content) != {each.name for each in fields(Known)}:
        return False
    outputs, frames = content["outputs"], content["frames"]
    return (
        isinstance(content["settings"], dict)
        and isinstance(outputs, list)
        and all(isinstance(each, str) and each in POSSIBLE for each in outputs)
        and all(_maps_to(content[name], str) for name in ("pairs", "seconds", "sampled", "clips"))
        and _maps_to(content["scales"], float)
        and _maps_to(content["unmade"], list)
        and all(isinstance(name, str) for names in content["unmade"].values() for name in names)
        and _is_count(content["numbers"])
        and (frames is None or _is_count(frames))
    )


def _maps_to(content: Any, kind: type) -> bool:
    return isinstance(content, dict) and all(isinstance(each, kind) for each in content.values())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

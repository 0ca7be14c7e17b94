"""Words for people: what somebody may have meant, and names made fit to be printed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

# Control characters but tab and newline, those that turn the direction of writing, and what is left
# of bytes that are no text.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def counted(number: int, thing: str) -> str:
    """1 pair, 2 pairs, 1,041 pairs"""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """The text with control characters as \\u001b and the like: a terminal shows them, obeys none."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The same with line breaks as \\n: a name that has them must not look like a line of ours."""
    return printable(text).replace("\n", "\\n")


def names_near(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Up to `most` of the known names, all in small letters, the nearest first."""
    return get_close_matches(word.lower(), list(known), most)


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """` (did you mean --overwrite?)`, or nothing where nothing is near."""
    return meant(names_near(word, known, most))


def meant(names: Iterable[str]) -> str:
    """The same with the names already found."""
    offered = " or ".join(names)
    return f" (did you mean {offered}?)" if offered else ""

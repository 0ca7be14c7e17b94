"""What somebody may have meant: the known names near a word, and the sentence that offers them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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

"""Which file is meant: a path, or the name of embedded or of published weights."""

from __future__ import annotations

import os
from pathlib import Path

from lcv.errors import ArgumentError, FileError
from lcv.models.embedded import EMBEDDED, embedded_file
from lcv.models.published import PUBLISHED, fetch
from lcv.words import did_you_mean


def find(weights: str | os.PathLike[str]) -> Path:
    """The file behind a path, or behind the name of embedded weights or of a published checkpoint.

    A file comes first. No name is of both kinds: the authors' small RAFT is raft-small-things.
    """
    check_weights(weights)
    if Path(weights).is_file():
        return Path(weights)
    name = str(weights)
    return embedded_file(name) if name in EMBEDDED else fetch(name)


def check_weights(weights: str | os.PathLike[str]) -> None:
    """Refuse what is neither a file nor the name of weights; nothing is fetched."""
    if not isinstance(weights, str | os.PathLike):
        hint = " (for a state_dict, build the network and call load_state_dict)"
        raise ArgumentError(
            f"weights is a {type(weights).__name__}, wanted a file's path or the name of a "
            f"published checkpoint{hint if isinstance(weights, dict) else ''}"
        )
    if not os.fspath(weights):
        raise ArgumentError(
            "weights is an empty text, wanted a file's path or the name of a published checkpoint"
        )
    path = Path(weights)
    try:
        if path.is_file() or str(weights) in (*EMBEDDED, *PUBLISHED):
            return
        if path.is_dir():
            raise FileError(f"{path}: this is a folder, wanted a checkpoint file")
        if path.exists():
            raise FileError(f"{path}: this is a device or a pipe, wanted a checkpoint file")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    known = (*EMBEDDED, *PUBLISHED)
    hint = did_you_mean(path.stem, known)
    for name, published in PUBLISHED.items():
        if path.name == Path(published.member).name:
            hint = f" (`lcv models --fetch {name}` fetches the published one and prints its path)"
    raise FileError(
        f"{path}: there is no such file, nor embedded or published weights of that name{hint}; "
        f"wanted a checkpoint's path, or one of {', '.join(known)}"
    )
